/* Tests the wait for threads that are still in our handler, before a filter of system calls that
 * kills for the return from a signal. Another thread, which has the handler's signal mask, acts as
 * such a thread. */
#include "unit.h"

#include "cpu/sampler.h"
#include "fake_syscall.h"
#include "kernel/profiler_time.h"
#include "kernel/signals_blocked.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct thread_table threads;
static struct recorder recorder = {.threads = &threads};
static struct thread_state *other;

/* --- the other thread --- */

static struct {
    pthread_t thread;
    bool by_libc; /* its mask is the one that libc sets for a program that blocks every signal */
    sem_t is_in;
    sem_t goes_on;
    sem_t is_out;
    int rounds; /* rounds in which other threads waited for it */
} handler;

static void *be_in_handler(void *unused) {
    const signal_mask full = ~(signal_mask)0;
    signal_mask before = 0;
    sigset_t every;
    sigfillset(&every);
    atomic_store(&other->tid, (uint32_t)gettid());
    if (handler.by_libc)
        pthread_sigmask(SIG_SETMASK, &every, NULL);
    else
        signals_change(SIG_SETMASK, &full, &before);
    sem_post(&handler.is_in);
    sem_wait(&handler.goes_on);
    signals_restore(&before);
    sem_post(&handler.is_out);
    return unused;
}

/* Lets the other thread return from the handler in the first round of the wait. */
static long fake_syscall(long number, const long a[6]) {
    if (number != SYS_nanosleep)
        return real_syscall(number, a);
    if (!handler.rounds++) {
        sem_post(&handler.goes_on);
        sem_wait(&handler.is_out);
    }
    return refuse_syscall(EINTR); /* a sleep that is over at once */
}

/* Is marked as used because the linker defines a section's bounds only if a function is in the
 * section. */
__attribute__((used)) PROFILER_TIME static void in_work_of_ours(void) {
}

static void wait_beside(bool by_libc) {
    memset(&handler, 0, sizeof handler);
    handler.by_libc = by_libc;
    sem_init(&handler.is_in, 0, 0);
    sem_init(&handler.goes_on, 0, 0);
    sem_init(&handler.is_out, 0, 0);
    assert_int_equal(pthread_create(&handler.thread, NULL, be_in_handler, NULL), 0);
    sem_wait(&handler.is_in);
    sampler_wait_for_handlers();
    sem_post(&handler.goes_on);
    pthread_join(handler.thread, NULL);
}

static int begin(void **state) {
    (void)state;
    memset(&threads, 0, sizeof threads);
    memset(&sampler, 0, sizeof sampler);
    thread_table_init(&threads, 16);
    sampler.recorder = &recorder;
    sampler.on = true;
    profiler_tls.thread = thread_table_take(&threads);
    other = thread_table_take(&threads);
    assert_true(profiler_tls.thread && other);
    return 0;
}

/* --- what must hold --- */

static void a_thread_in_the_handler_is_waited_for(void **state) {
    (void)state;
    wait_beside(false);
    assert_int_equal(handler.rounds, 1);
}

/* Does not wait for a thread that blocks every signal by libc: otherwise the wait would last to its
 * bound. */
static void a_thread_that_blocks_every_signal_is_not(void **state) {
    (void)state;
    wait_beside(true);
    assert_int_equal(handler.rounds, 0);
}

static void the_wait_has_an_end(void **state) {
    const signal_mask full = ~(signal_mask)0;
    signal_mask before = 0;
    (void)state;
    handler.rounds = 1; /* no thread leaves the handler in a later round */
    profiler_tls.thread = NULL;
    atomic_store(&other->tid, (uint32_t)gettid());
    assert_true(signals_change(SIG_SETMASK, &full, &before));
    sampler_wait_for_handlers();
    signals_restore(&before);
    assert_true(handler.rounds > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_thread_in_the_handler_is_waited_for, begin),
        cmocka_unit_test_setup(a_thread_that_blocks_every_signal_is_not, begin),
        cmocka_unit_test_setup(the_wait_has_an_end, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
