/* Hooks pthread_create and thrd_create: every thread starts in our routine, which registers the
 * thread, runs the program's own routine, and notices every way in which that routine can end. The
 * thread's destructors run later and are still sampled. */
#include "capture/binding/deep_binding.h"
#include "capture/capture.h"
#include "capture/symbols/next.h"
#include "capture/thread_life.h"
#include "entry.h"
#include "start.h"

#include "arch_machine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

enum { SWEPT_AT_START = 2 };

/* Ends the thread's profiling. In a forked child, the thread that forked is the main thread, and
 * has another state: it ends like any main thread, unrecorded. But the thread may be the process's
 * last, and then our helper must end, too. */
static void end_thread(void *argument) {
    struct thread_state *const thread = argument;
    if (profiler_tls.thread == thread)
        thread_end(thread);
    thread_is_gone();
}

static void thread_begin_here(struct thread_state *thread) {
    /* glibc keeps the thread's static TLS and control block on top of its stack */
    const uintptr_t top = thread_pointer();
    thread_begin(thread, (struct stack_range){top - thread->stack_size, top});
}

static void *pthread_main(void *argument) {
    struct thread_state *const thread = argument;
    void *(*const start_routine)(void *) = thread->start_routine;
    void *const start_argument = thread->start_argument;
    void *result;
    thread_begin_here(thread);
    /* handles return, pthread_exit and cancellation alike */
    pthread_cleanup_push(end_thread, thread);
    result = start_routine(start_argument);
    pthread_cleanup_pop(1);
    return result;
}

static int thrd_main(void *argument) {
    struct thread_state *const thread = argument;
    thrd_start_t start_routine;
    void *const start_argument = thread->start_argument;
    int result;
    memcpy(&start_routine, &thread->start_routine, sizeof start_routine);
    thread_begin_here(thread);
    pthread_cleanup_push(end_thread, thread);
    result = start_routine(start_argument);
    pthread_cleanup_pop(1);
    return result;
}

static size_t stack_size_of(const pthread_attr_t *attributes) {
    pthread_attr_t by_default;
    size_t size;
    if (attributes && pthread_attr_getstacksize(attributes, &size) == 0 && size)
        return size;
    size = 8u << 20;
    if (pthread_attr_init(&by_default) == 0) {
        pthread_attr_getstacksize(&by_default, &size);
        pthread_attr_destroy(&by_default);
    }
    return size;
}

static struct thread_state *prepare_thread(const pthread_attr_t *attributes) {
    /* skips threads that the libraries of our helper create, because they are not the
     * application's */
    if (profiler_tls.inside)
        return NULL;
    if (!atomic_load(&capture.armed))
        start_before_constructor();
    if (!atomic_load(&capture.armed) || thread_table_is_wiped(&capture.threads))
        return NULL;
    void (*const want_helper)(bool) = atomic_load(&capture.want_helper);
    if (want_helper)
        want_helper(true);
    deep_binding_catch_up();
    capture_sweep_threads(SWEPT_AT_START);
    struct thread_state *const thread = thread_table_take(&capture.threads);
    if (!thread)
        return NULL;
    thread->stack_size = stack_size_of(attributes);
    wait_sampler_expect(&capture.waits, thread);
    return thread;
}

/* --- threads of our libraries, such as a resolver's --- */

struct profiler_thread_start {
    void *(*routine)(void *);
    void *argument;
};

static void *profiler_thread_main(void *argument) {
    const struct profiler_thread_start start = *(struct profiler_thread_start *)argument;
    thread_mark_as_profiler();
    free(argument);
    return start.routine(start.argument);
}

static int create_profiler_thread(pthread_t *id, const pthread_attr_t *attributes,
                                  void *(*routine)(void *), void *argument) {
    struct profiler_thread_start *const start = malloc(sizeof *start);
    if (!start)
        return EAGAIN;
    *start = (struct profiler_thread_start){routine, argument};
    const int error =
        next_library_calls()->pthread_create(id, attributes, profiler_thread_main, start);
    if (error)
        free(start);
    return error;
}

/* --- threads of the program --- */

static void thread_slot_give_back(struct thread_state *thread) {
    thread_table_give_back(&capture.threads, thread);
    thread_is_gone();
}

HOOK int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*start)(void *),
                        void *argument) {
    if (profiler_tls.is_profiler_thread)
        return create_profiler_thread(id, attributes, start, argument);
    struct thread_state *const thread = prepare_thread(attributes);
    if (!thread)
        return next_library_calls()->pthread_create(id, attributes, start, argument);
    thread->start_routine = start;
    thread->start_argument = argument;
    atomic_fetch_add(&capture.live_threads, 1);
    const int error = next_library_calls()->pthread_create(id, attributes, pthread_main, thread);
    if (error)
        thread_slot_give_back(thread);
    return error;
}

HOOK int thrd_create(thrd_t *id, thrd_start_t start, void *argument) {
    struct thread_state *const thread = prepare_thread(NULL);
    if (!thread)
        return next_library_calls()->thrd_create(id, start, argument);
    memcpy(&thread->start_routine, &start, sizeof start);
    thread->start_argument = argument;
    atomic_fetch_add(&capture.live_threads, 1);
    const int result = next_library_calls()->thrd_create(id, thrd_main, thread);
    if (result != thrd_success)
        thread_slot_give_back(thread);
    return result;
}
