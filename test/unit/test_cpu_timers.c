/* Tests CPU timers against a kernel of our own: between any two calls of one thread another may
 * act. */
#include "unit.h"

#include "clock.h"
#include "cpu/cpu_timers.h"
#include "cpu/libc_signal.h"
#include "fake_syscall.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum { TIMERS = 16, TID = 4711 };

/* --- the kernel --- */

static struct {
    struct {
        bool exists;
        bool runs;
        int signal;
    } timers[TIMERS];
    int created;
    int programs;                /* the signal that the program has taken; 0: none */
    bool refuses;                /* refuses a timer, because of RLIMIT_SIGPENDING */
    bool keeps;                  /* a sandbox: no timer is deleted */
    bool interval_runs;          /* ITIMER_PROF runs */
    void (*within_create)(void); /* what another thread does before the call returns */
    void (*within_set)(void);
    void (*within_getitimer)(void);
} kernel;

static void act(void (**what)(void)) {
    void (*const once)(void) = *what;
    *what = NULL;
    if (once)
        once();
}

static long create(const struct sigevent *event, int *id) {
    if (kernel.refuses)
        return refuse_syscall(EAGAIN);
    *id = kernel.created++;
    assert_true(*id < TIMERS);
    kernel.timers[*id].exists = true;
    kernel.timers[*id].signal = event->sigev_signo;
    act(&kernel.within_create);
    return 0;
}

static long set(int id, bool runs) {
    if (!kernel.timers[id].exists)
        return refuse_syscall(EINVAL);
    assert_false(runs && kernel.timers[id].signal == kernel.programs);
    act(&kernel.within_set);
    kernel.timers[id].runs = kernel.timers[id].exists && runs;
    return 0;
}

static long delete_timer(int id) {
    if (kernel.keeps)
        return refuse_syscall(EPERM);
    if (!kernel.timers[id].exists)
        return refuse_syscall(EINVAL);
    kernel.timers[id].exists = kernel.timers[id].runs = false;
    return 0;
}

static long getitimer_fake(struct itimerval *value) {
    memset(value, 0, sizeof *value);
    act(&kernel.within_getitimer);
    return 0;
}

static long setitimer_fake(const struct itimerval *value, struct itimerval *before) {
    if (before)
        memset(before, 0, sizeof *before);
    kernel.interval_runs = value->it_value.tv_sec || value->it_value.tv_usec;
    return 0;
}

static long fake_syscall(long number, const long a[6]) {
    switch (number) {
    case SYS_mmap: /* memory of the table of threads */
        return real_syscall(number, a);
    case SYS_timer_create:
        return create((const struct sigevent *)a[1], (int *)a[2]);
    case SYS_timer_settime:
        return set((int)a[0], ((const struct itimerspec *)a[2])->it_value.tv_nsec > 0);
    case SYS_timer_delete:
        return delete_timer((int)a[0]);
    case SYS_getitimer:
        return getitimer_fake((struct itimerval *)a[1]);
    case SYS_setitimer:
        return setitimer_fake((const struct itimerval *)a[1], (struct itimerval *)a[2]);
    default:
        return refuse_syscall(EINVAL);
    }
}

/* --- one thread --- */

static struct thread_table threads;
static struct thread_state *thread;
static struct cpu_timers timers;

static void pause_thread(void) {
    cpu_timers_pause(thread);
}

static void end_thread(void) {
    cpu_timers_stop(thread);
}

static void start_thread(void) {
    cpu_timers_start(&timers, thread);
}

static int begin(void **state) {
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    memset(&threads, 0, sizeof threads);
    thread_table_init(&threads, 16);
    thread = thread_table_take(&threads);
    assert_non_null(thread);
    thread->random = 1;
    atomic_store(&thread->tid, TID);
    timers = (struct cpu_timers){.period_nano = 1000, .reserve = TIMER_NONE};
    atomic_store(&timers.signal, SIGPROF);
    start_thread();
    assert_true(kernel.timers[0].runs);
    return 0;
}

/* Returns the number of timers that run and send this signal. The process's timer is in reserve,
 * and does not run. */
static int running(int signal) {
    int count = 0;
    for (int id = 0; id < TIMERS; id++)
        count += kernel.timers[id].runs && kernel.timers[id].signal == signal;
    return count;
}

static int existing(void) {
    int count = 0;
    for (int id = 0; id < TIMERS; id++)
        count += kernel.timers[id].exists && id != atomic_load(&timers.reserve);
    return count;
}

/* --- what must hold --- */

static void all_timers_move(void **state) {
    (void)state;
    assert_true(cpu_timers_move(&timers, &threads, SIGRTMIN));
    assert_int_equal(running(SIGPROF), 0);
    assert_int_equal(running(SIGRTMIN), 1);
    assert_int_equal(existing(), 1);
    assert_true(cpu_timers_move(&timers, &threads, 0));
    assert_int_equal(existing(), 0);
}

/* A signal would be delivered on a stack that has no room for it. */
static void a_thread_that_pauses_meanwhile_gets_no_timer(void **state) {
    (void)state;
    kernel.within_create = pause_thread;
    (void)cpu_timers_move(&timers, &threads, SIGRTMIN);
    assert_int_equal(running(SIGRTMIN), 0);
    assert_int_equal(existing(), 0);
    start_thread();
    assert_int_equal(running(SIGRTMIN), 1);
}

static void nor_a_thread_that_pauses_at_its_end(void **state) {
    (void)state;
    kernel.within_set = pause_thread;
    (void)cpu_timers_move(&timers, &threads, SIGRTMIN);
    assert_int_equal(running(SIGRTMIN), 0);
    assert_int_equal(existing(), 0);
}

static void a_thread_that_ends_meanwhile_leaves_no_timer(void **state) {
    (void)state;
    kernel.within_create = end_thread;
    (void)cpu_timers_move(&timers, &threads, SIGRTMIN);
    assert_int_equal(existing(), 0);
}

static void a_thread_that_starts_meanwhile_has_a_timer(void **state) {
    (void)state;
    kernel.within_create = start_thread;
    (void)cpu_timers_move(&timers, &threads, SIGRTMIN);
    assert_int_equal(running(SIGRTMIN), 1);
    assert_int_equal(existing(), 1);
}

/* --- a timer begins while the program takes the signal ---
 *
 * From then on the signal has the program's action, or ends the process by default. Even one expiry
 * does harm, however soon the timer is deleted. The kernel of this test refuses to arm such a
 * timer. */

static void take_signal(void) {
    (void)cpu_timers_move(&timers, &threads, SIGRTMIN);
    kernel.programs = SIGPROF;
}

static void a_new_thread_never_arms_the_programs_signal(void **state) {
    (void)state;
    end_thread();
    kernel.within_create = take_signal;
    start_thread();
    assert_int_equal(kernel.programs, SIGPROF);
    assert_int_equal(running(SIGPROF), 0);
    assert_int_equal(running(SIGRTMIN), 1);
    assert_int_equal(existing(), 1);
}

static void nor_does_the_helper(void **state) {
    (void)state;
    end_thread();
    kernel.within_create = take_signal;
    assert_false(cpu_timers_watch_helper(&timers));
    assert_int_equal(kernel.programs, SIGPROF);
    assert_int_equal(existing(), 0);
    assert_true(cpu_timers_watch_helper(&timers));
    assert_int_equal(running(SIGRTMIN), 1);
}

static void turn_off(void);
static void turn_on(void);

/* Has the program take the signal while one thread arms the timer of another. The move must not
 * wait for ever for the thread that arms. */
static void nor_a_thread_that_another_arms(void **state) {
    (void)state;
    turn_off();
    kernel.within_create = take_signal;
    turn_on();
    assert_int_equal(kernel.programs, SIGPROF);
    assert_int_equal(running(SIGPROF), 0);
    assert_int_equal(existing(), 0);
}

static void pause_where_no_timer_is_deleted(void) {
    kernel.keeps = true;
    pause_thread();
}

/* Pauses a thread where the kernel deletes no timer, but only stops it: the thread could still arm
 * a stopped timer. */
static void nor_a_thread_that_pauses_where_no_timer_is_deleted(void **state) {
    (void)state;
    end_thread();
    kernel.within_set = pause_where_no_timer_is_deleted;
    start_thread();
    assert_true(kernel.keeps);
    assert_int_equal(running(SIGPROF), 0);
}

/* Uses the interval timer, the last resort, where the kernel refuses all others. No number marks it
 * as ours, so it may be armed too late, but then it is disarmed at once. */
static void nor_does_the_interval_timer_go_on(void **state) {
    (void)state;
    end_thread();
    kernel.refuses = true;
    start_thread();
    assert_true(kernel.interval_runs);
    (void)cpu_timers_move(&timers, &threads, 0);
    assert_false(kernel.interval_runs);
    atomic_store(&timers.signal, SIGPROF);
    kernel.within_getitimer = take_signal;
    start_thread();
    assert_int_equal(kernel.programs, SIGPROF);
    assert_false(kernel.interval_runs);
    assert_int_equal(atomic_load(&timers.process), PROCESS_TIMER_OFF);
}

/* --- off, and on again --- */

static void turn_off(void) {
    atomic_store(&timers.off, true);
    cpu_timers_disarm(&timers, &threads);
}

static void turn_on(void) {
    atomic_store(&timers.off, false);
    cpu_timers_arm(&timers, &threads);
}

static void off_no_timer_is_armed_and_on_again_each_is(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        turn_off();
        assert_int_equal(existing(), 0);
        turn_on();
        assert_int_equal(running(SIGPROF), 1);
        assert_int_equal(existing(), 1);
    }
}

static void the_process_timer_stops_too(void **state) {
    (void)state;
    cpu_timers_reserve(&timers);
    const int reserve = atomic_load(&timers.reserve);
    kernel.timers[reserve].runs = true;
    atomic_store(&timers.process, PROCESS_TIMER_POSIX);
    turn_off();
    assert_false(kernel.timers[reserve].runs);
    assert_true(kernel.timers[reserve].exists); /* the kernel would not give another timer */
    assert_int_equal(atomic_load(&timers.process), PROCESS_TIMER_OFF);
}

/* Delivers an expiry that the kernel gave to another thread before the timer was stopped: if the
 * sampler did not accept it as its own, it would end the process. */
static void the_last_expiry_of_the_interval_timer_is_ours(void **state) {
    (void)state;
    siginfo_t info = {.si_signo = SIGPROF, .si_code = SI_KERNEL};
    assert_false(cpu_timers_sent(&timers, &info));
    end_thread();
    kernel.refuses = true;
    start_thread();
    assert_true(cpu_timers_sent(&timers, &info));
    turn_off();
    assert_false(kernel.interval_runs);
    assert_true(cpu_timers_sent(&timers, &info));
    (void)cpu_timers_move(&timers, &threads, SIGRTMIN);
    assert_true(cpu_timers_sent(&timers, &info));
    info.si_signo = SIGRTMIN;
    assert_false(cpu_timers_sent(&timers, &info));
}

static void a_thread_started_while_off_is_armed_with_the_others(void **state) {
    (void)state;
    end_thread();
    turn_off();
    start_thread();
    assert_int_equal(existing(), 0);
    turn_on();
    assert_int_equal(running(SIGPROF), 1);
}

static void a_thread_started_during_disarming_has_none(void **state) {
    (void)state;
    end_thread();
    kernel.within_create = turn_off;
    start_thread();
    assert_int_equal(existing(), 0);
}

static void a_thread_that_must_have_no_timer_is_not_armed(void **state) {
    (void)state;
    turn_off();
    pause_thread();
    turn_on();
    assert_int_equal(existing(), 0);
    turn_off();
    end_thread();
    turn_on();
    assert_int_equal(existing(), 0);
}

/* A thread that has retired keeps its slot until a sweep, and its id may be another thread's. */
static void a_retired_thread_is_not_armed(void **state) {
    (void)state;
    turn_off();
    thread_table_retire(&threads, thread);
    turn_on();
    assert_int_equal(existing(), 0);
}

static void a_thread_that_pauses_during_arming_has_none(void **state) {
    (void)state;
    turn_off();
    kernel.within_create = pause_thread;
    turn_on();
    assert_int_equal(existing(), 0);
}

static void off_the_signal_moves_without_timers(void **state) {
    (void)state;
    turn_off();
    assert_true(cpu_timers_move(&timers, &threads, SIGRTMIN));
    assert_int_equal(existing(), 0);
    turn_on();
    assert_int_equal(running(SIGRTMIN), 1);
}

static void a_thread_that_blocks_the_signal_gets_libcs(void **state) {
    (void)state;
    turn_off();
    cpu_timers_use_libc_signal(&timers, thread);
    assert_int_equal(existing(), 0);
    turn_on();
    assert_int_equal(running(LIBC_SIGNAL), 1);
    kernel.within_create = turn_off;
    cpu_timers_use_libc_signal(&timers, thread);
    assert_int_equal(existing(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_timers_move, begin),
        cmocka_unit_test_setup(a_thread_that_pauses_meanwhile_gets_no_timer, begin),
        cmocka_unit_test_setup(nor_a_thread_that_pauses_at_its_end, begin),
        cmocka_unit_test_setup(a_thread_that_ends_meanwhile_leaves_no_timer, begin),
        cmocka_unit_test_setup(a_thread_that_starts_meanwhile_has_a_timer, begin),
        cmocka_unit_test_setup(a_new_thread_never_arms_the_programs_signal, begin),
        cmocka_unit_test_setup(nor_does_the_helper, begin),
        cmocka_unit_test_setup(nor_a_thread_that_another_arms, begin),
        cmocka_unit_test_setup(nor_a_thread_that_pauses_where_no_timer_is_deleted, begin),
        cmocka_unit_test_setup(nor_does_the_interval_timer_go_on, begin),
        cmocka_unit_test_setup(off_no_timer_is_armed_and_on_again_each_is, begin),
        cmocka_unit_test_setup(the_process_timer_stops_too, begin),
        cmocka_unit_test_setup(the_last_expiry_of_the_interval_timer_is_ours, begin),
        cmocka_unit_test_setup(a_thread_started_while_off_is_armed_with_the_others, begin),
        cmocka_unit_test_setup(a_thread_started_during_disarming_has_none, begin),
        cmocka_unit_test_setup(a_thread_that_must_have_no_timer_is_not_armed, begin),
        cmocka_unit_test_setup(a_retired_thread_is_not_armed, begin),
        cmocka_unit_test_setup(a_thread_that_pauses_during_arming_has_none, begin),
        cmocka_unit_test_setup(off_the_signal_moves_without_timers, begin),
        cmocka_unit_test_setup(a_thread_that_blocks_the_signal_gets_libcs, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
