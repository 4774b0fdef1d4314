/* Tests a signal to the whole process for which the kernel has chosen another thread. That thread
 * is in vfork(): the kernel chooses and wakes it as any other, but it does not run until the child
 * releases it. So it has certainly not received its signal yet when a second thread lets signals
 * through. */
#include "unit.h"

#include "fake_syscall.h"
#include "kernel/profiler_time.h"
#include "kernel/signals_blocked.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { OURS = SIGPROF, MOST_SLEEPS = 64 };

static _Atomic int32_t threads_known;
static const _Atomic int ours = OURS;
static _Atomic int handled_by; /* id of the thread that handled the signal */
static _Atomic int handled;
static int sleeps;
static void (*while_asleep)(void);

static void handle(int number) {
    (void)number;
    atomic_store(&handled_by, gettid());
    atomic_fetch_add(&handled, 1);
}

static long fake_syscall(long number, const long a[6]) {
    if (number != SYS_nanosleep)
        return real_syscall(number, a);
    assert_true(sleeps++ < MOST_SLEEPS);
    if (while_asleep)
        while_asleep();
    return refuse_syscall(EINTR); /* a sleep that is over at once */
}

static void yield_until(_Atomic int *word, int value) {
    while (atomic_load(word) != value)
        (void)bare_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static int begin(void **state) {
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    (void)state;
    for (int number = SIGUSR1; number <= SIGUSR2; number++)
        assert_int_equal(sigaction(number, &action, NULL), 0);
    assert_int_equal(sigaction(OURS, &action, NULL), 0);
    assert_int_equal(sigaction(SIGRTMIN, &action, NULL), 0);
    assert_int_equal(sigaction(SIGRTMIN + 1, &action, NULL), 0);
    atomic_store(&threads_known, 2);
    atomic_store(&signals_shared.unasked, false);
    atomic_store(&handled, 0);
    signals_give_way_to(&threads_known, &ours);
    sleeps = 0;
    while_asleep = NULL;
    return 0;
}

/* --- two threads: the first, which the kernel chooses, is in vfork() --- */

enum { NOT_YET, BLOCKED, SENT, RELEASED };
static _Atomic int stage;

/* Releases the first thread from vfork(), and thus to its signal. */
static void release_first(void) {
    atomic_store(&stage, RELEASED);
    yield_until(&handled, 1);
}

static void *sampled(void *unused) {
    signal_mask before;
    assert_true(signals_block(&before));
    atomic_store(&stage, BLOCKED);
    yield_until(&stage, SENT);
    signals_restore(&before);
    atomic_store(&stage, RELEASED);
    return unused;
}

static void a_thread_that_was_chosen_has_its_signal(void **state) {
    (void)state;
    pthread_t thread;
    atomic_store(&stage, NOT_YET);
    while_asleep = release_first;
    const pid_t process = getpid();
    assert_int_equal(pthread_create(&thread, NULL, sampled, NULL), 0);
    yield_until(&stage, BLOCKED);
    const pid_t child = vfork();
    if (child == 0) {
        (void)bare_syscall(SYS_kill, process, SIGUSR1, 0, 0, 0, 0);
        atomic_store(&stage, SENT);
        yield_until(&stage, RELEASED);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    yield_until(&handled, 1);
    assert_int_equal(handled_by, gettid());
    assert_int_equal(sleeps, 1);
}

/* --- one thread alone, from which no other thread takes a signal --- */

/* Sends the signal to the process, or to the calling thread, and lets it through; returns how often
 * the thread has slept.
 */
static int sleeps_for(int number, bool of_thread) {
    signal_mask before;
    const int was = atomic_load(&handled);
    const int slept = sleeps;
    assert_true(signals_block(&before));
    if (of_thread)
        assert_int_equal(raise(number), 0);
    else
        assert_int_equal(kill(getpid(), number), 0);
    errno = ENOENT;
    signals_restore(&before);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(atomic_load(&handled), was + 1);
    return sleeps - slept;
}

static void a_pending_signal_is_taken_after_a_bound(void **state) {
    (void)state;
    const int slept = sleeps_for(SIGUSR2, false);
    assert_true(slept > 0);
    /* the number of waits, doubled each time */
    for (int left_out = 1; left_out <= 64; left_out *= 2) {
        const int times = left_out == 64 ? 63 : left_out * 2 - 1;
        for (int i = 0; i < times; i++)
            assert_int_equal(sleeps_for(SIGUSR2, i % 2), 0);
        sleeps = 0;
        assert_int_equal(sleeps_for(SIGUSR2, left_out % 3), slept);
    }
}

static void nothing_is_waited_for_that_is_no_other_threads(void **state) {
    (void)state;
    assert_int_equal(sleeps_for(OURS, false), 0);
    atomic_store(&threads_known, 1);
    assert_int_equal(sleeps_for(SIGRTMIN, false), 0);
    atomic_store(&threads_known, 2);
    signals_ask_no_more();
    assert_int_equal(sleeps_for(SIGRTMIN, false), 0);
    atomic_store(&signals_shared.unasked, false);
    assert_true(sleeps_for(SIGRTMIN, false) > 0);
}

static void ask_no_more(void) {
    while_asleep = NULL;
    assert_int_equal(signals_shared.giving_way, 1);
    /* no other thread gives way in this test */
    atomic_store(&signals_shared.giving_way, 0);
    signals_ask_no_more();
    atomic_store(&signals_shared.giving_way, 1);
}

static void a_waiting_thread_makes_no_call_behind_a_new_filter(void **state) {
    (void)state;
    while_asleep = ask_no_more;
    assert_int_equal(sleeps_for(SIGRTMIN + 1, false), 1);
    atomic_store(&signals_shared.giving_way, 1); /* counts a thread of the parent's, as in a forked
                                                  * child */
    sleeps = 0;
    signals_ask_no_more();
    assert_true(sleeps > 0);
    atomic_store(&signals_shared.giving_way, 0);
}

static void signals_blocked_before_are_not_awaited(void **state) {
    (void)state;
    signal_mask before;
    assert_true(signal_block(SIGUSR1, &before));
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    signal_mask blocked;
    assert_true(signals_block(&blocked));
    signals_restore(&blocked);
    assert_int_equal(sleeps, 0);
    assert_int_equal(handled, 0);
    signal_unblock(SIGUSR1);
    assert_int_equal(handled, 1);
}

/* --- where a pending signal is delivered --- */

static bool delivered_in_profiler_time;

static void handle_with_place(int number, siginfo_t *info, void *context) {
    const ucontext_t *const interrupted = context;
    (void)number;
    (void)info;
    delivered_in_profiler_time =
        is_profiler_time((uintptr_t)interrupted->uc_mcontext.gregs[REG_RIP]);
}

static void an_expiry_that_was_pending_is_the_profilers_time(void **state) {
    (void)state;
    const struct sigaction action = {.sa_sigaction = handle_with_place, .sa_flags = SA_SIGINFO};
    signal_mask before;
    delivered_in_profiler_time = false;
    assert_int_equal(sigaction(OURS, &action, NULL), 0);
    assert_true(signals_block(&before));
    assert_int_equal(raise(OURS), 0);
    signals_restore(&before);
    assert_true(delivered_in_profiler_time);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_thread_that_was_chosen_has_its_signal, begin),
        cmocka_unit_test_setup(a_pending_signal_is_taken_after_a_bound, begin),
        cmocka_unit_test_setup(nothing_is_waited_for_that_is_no_other_threads, begin),
        cmocka_unit_test_setup(a_waiting_thread_makes_no_call_behind_a_new_filter, begin),
        cmocka_unit_test_setup(signals_blocked_before_are_not_awaited, begin),
        cmocka_unit_test_setup(an_expiry_that_was_pending_is_the_profilers_time, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
