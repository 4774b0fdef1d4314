/* Runs a thread that waits for a byte, in a function of its own or in one like a hook. The test
 * starts `waits`, which samples the thread. */
#ifndef OTELPROF_TEST_WAITING_THREAD_H
#define OTELPROF_TEST_WAITING_THREAD_H

#include "clock.h"
#include "context/program_context.h"
#include "recorder_fixture.h"
#include "wait/wait_sampler.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static struct wait_sampler waits;

static struct waiting {
    pthread_t id;
    int ends[2];
    struct thread_state *state;
    _Atomic bool begun;
    _Atomic bool has_worked;
    bool in_hook;      /* the thread waits in a hook, */
    bool stays_parked; /* which leaves its slot marked, as a jump would, and waits once more */
    const pthread_mutex_t *mutex; /* the mutex that its hook waits for; NULL: a queue */
} waiting;

static __attribute__((noinline)) void waits_for_a_byte(int end) {
    char byte;
    assert_int_equal(read(end, &byte, 1), 1);
    __asm__ volatile("" : : : "memory"); /* prevents a tail call */
}

/* Waits as a hook does: the slot shows the wait with the hook's caller, which must be on the
 * stack. */
static __attribute__((noinline)) void hook(const struct waiting *self) {
    struct wait_slot *const slot = &self->state->wait_slot;
    const struct hook_caller caller = {.stack_pointer = (uintptr_t)__builtin_frame_address(0) + 16,
                                       .frame_pointer = *(uintptr_t *)__builtin_frame_address(0),
                                       .pc = (uintptr_t)__builtin_return_address(0)};
    wait_slot_begin(slot, &caller, self->mutex ? WAIT_LOCK : WAIT_QUEUE, (uintptr_t)self->mutex);
    waits_for_a_byte(self->ends[0]);
    if (!self->stays_parked)
        wait_slot_end(slot);
}

static __attribute__((noinline)) void waits_in_hook(const struct waiting *self) {
    hook(self);
    __asm__ volatile("" : : : "memory");
}

static void *wait_here(void *arg) {
    struct waiting *const self = arg;
    struct thread_state *const state = self->state;
    const uintptr_t top = (uintptr_t)__builtin_thread_pointer();
    state->stack = (struct stack_range){top - (1 << 20), top};
    state->pointer = top;
    atomic_store(&state->tid, (uint32_t)gettid());
    atomic_store(&self->begun, true);
    if (self->in_hook)
        waits_in_hook(self);
    if (!self->in_hook || self->stays_parked)
        waits_for_a_byte(self->ends[0]);
    return NULL;
}

static bool is_blocked(uint32_t tid) {
    char path[64];
    char text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%u/syscall", tid);
    FILE *const file = fopen(path, "re");
    assert_non_null(file);
    const char *const read = fgets(text, sizeof text, file);
    fclose(file);
    return read && text[0] == '0';
}

static void begin_waiting_of(struct waiting *self) {
    self->begun = false;
    assert_int_equal(pipe(self->ends), 0);
    self->state = begin_thread(0);
    assert_non_null(self->state);
    wait_sampler_expect(&waits, self->state);
    assert_int_equal(pthread_create(&self->id, NULL, wait_here, self), 0);
    while (!self->begun || !is_blocked(atomic_load(&self->state->tid)))
        usleep(1000);
}

static void begin_waiting(void) {
    begin_waiting_of(&waiting);
}

enum { WORK_NANO = 50000000 };

static void work_here(int number) {
    const uint64_t until = thread_cpu_nano() + WORK_NANO;
    (void)number;
    while (thread_cpu_nano() < until)
        ;
    waiting.has_worked = true;
}

/* Has the waiting thread work in a handler. Returns once it waits again. */
__attribute__((unused)) static void work_and_wait_on(void) {
    const struct sigaction action = {.sa_handler = work_here, .sa_flags = SA_RESTART};
    waiting.has_worked = false;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_kill(waiting.id, SIGUSR1), 0);
    while (!waiting.has_worked || !is_blocked(atomic_load(&waiting.state->tid)))
        usleep(1000);
}

/* Gives the waiting thread a span, as the thread would set it itself before it waits. */
__attribute__((unused)) static void give_span(const uint8_t *id) {
    contexts.sources = ~0u;
    waiting.state->program_context = program_context_make(waiting.state->index);
    assert_non_null(waiting.state->program_context);
    program_context_set_span(waiting.state->program_context, id, id);
}

__attribute__((unused)) static void take_span(void) {
    contexts.sources = 0;
    program_context_set_span(waiting.state->program_context, NULL, NULL);
    waiting.state->program_context = NULL;
}

/* Ends the thread's wait, and joins the thread. */
static void end_waiting_of(struct waiting *self) {
    assert_int_equal(write(self->ends[1], "x", 1), 1);
    assert_int_equal(pthread_join(self->id, NULL), 0);
    close(self->ends[0]);
    close(self->ends[1]);
}

static void end_waiting(void) {
    end_waiting_of(&waiting);
}

__attribute__((unused)) static void give_back(void) {
    thread_table_give_back(&threads, waiting.state);
}

#endif
