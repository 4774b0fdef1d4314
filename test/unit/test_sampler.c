/* The sampling signal, against a kernel of our own: it is had, given away, and never left behind
 * with the wrong action. */
#include "unit.h"

#include "cpu/masked_threads.h"
#include "cpu/sampler_parts.h"
#include "cpu/signal_stacks.h"
#include "record/countdown.h"
#include "sampler_fixture.h"

#include <semaphore.h>

enum { LAST_FREE = 64 - 3 }; /* the last ones are left to debuggers */

static bool is_handled_by_us(int number) {
    return kernel.actions[number].sa_sigaction == signal_entry;
}

static bool is_default(int number) {
    return kernel.actions[number].sa_handler == SIG_DFL;
}

static void of_the_program(int number) {
    (void)number;
}

static void use(int number) {
    kernel.actions[number] = (struct sigaction){.sa_handler = of_the_program};
}

static void use_every_real_time_signal(void) {
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        use(number);
}

/* --- taking a signal --- */

static void the_signal_of_the_settings_is_taken(void **state) {
    (void)state;
    assert_true(sampler_install());
    assert_true(sampler.on);
    assert_true(sampler_uses(SIGPROF));
    assert_true(is_handled_by_us(SIGPROF));
    assert_true(kernel.actions[SIGPROF].sa_flags & SA_ONSTACK);
    for (int number = 1; number <= 64; number++) /* libc's own, too */
        assert_int_equal(((unsigned char *)&kernel.actions[SIGPROF].sa_mask)[(number - 1) / 8],
                         0xff);
}

static void a_signal_in_use_is_not_taken(void **state) {
    (void)state;
    use(SIGPROF);
    use(LAST_FREE);
    assert_true(sampler_install());
    assert_true(sampler_uses(LAST_FREE - 1));
    assert_false(is_handled_by_us(SIGPROF));
    assert_false(is_handled_by_us(LAST_FREE));
}

static void without_a_free_signal_nothing_is_sampled(void **state) {
    (void)state;
    use(SIGPROF);
    use_every_real_time_signal();
    assert_false(sampler_install());
    assert_false(sampler.on);
    assert_false(sampler_uses(SIGPROF));
    sampler_start_thread(thread);
    assert_int_equal(kernel.created, 0);
}

/* --- giving it away --- */

static void what_the_program_takes_it_gets_as_it_was(void **state) {
    (void)state;
    sampler.believed.sa_handler = SIG_DFL;
    assert_true(sampler_give_signal_away(SIGPROF));
    assert_true(is_default(SIGPROF));
    assert_true(sampler_uses(LAST_FREE));
    assert_true(is_handled_by_us(LAST_FREE));
    assert_int_equal(timers_of(SIGPROF), 0);
    assert_int_equal(timers_of(LAST_FREE), ALL_TIMERS);
    assert_false(atomic_load(&sampler.moving));
}

static void where_no_other_is_free_sampling_ends(void **state) {
    (void)state;
    use_every_real_time_signal();
    assert_true(sampler_give_signal_away(SIGPROF));
    assert_true(is_default(SIGPROF));
    assert_false(sampler_uses(SIGPROF));
    assert_int_equal(masked_threads_signal(), 0);
    assert_int_equal(timers_of(SIGPROF), 0);
    assert_true(sampler_give_signal_away(SIGPROF)); /* there is none to give */
}

static void one_thread_moves_the_signal_at_a_time(void **state) {
    (void)state;
    atomic_store(&sampler.moving, true);
    sampler_choose_unnamed_signal();
    use(SIGPROF);
    sampler_check_signal();
    assert_true(sampler_uses(SIGPROF));
    assert_int_equal(timers_of(SIGPROF), ALL_TIMERS);
    assert_true(sampler_uses_when_stable(SIGPROF));
    assert_true(atomic_load(&sampler.waited_in_vain)); /* and nobody waits again */
}

/* Other threads stop and start sampling all the time: at each try of the thread that takes the
 * signal one of them is changing the timers. */
enum { CHANGES = 100 };

static int changes;

static void another_change_begins(long number, const long a[6]) {
    (void)a;
    if (number == SYS_nanosleep && ++changes == CHANGES)
        atomic_store(&sampler.moving, false);
}

static void the_program_takes_the_signal_behind_any_number_of_changes(void **state) {
    (void)state;
    changes = 0;
    atomic_store(&sampler.moving, true);
    kernel.meanwhile = another_change_begins;
    assert_true(sampler_give_signal_away(SIGPROF));
    assert_int_equal(changes, CHANGES);
    assert_true(is_default(SIGPROF));
    assert_true(sampler_uses(LAST_FREE));
    assert_int_equal(timers_of(SIGPROF), 0);
    assert_false(atomic_load(&sampler.moving));
}

/* Another thread has taken the signal meanwhile: we keep the one that we moved to. */
static void a_signal_that_was_taken_meanwhile_is_given_away_once(void **state) {
    (void)state;
    assert_true(sampler_give_signal_away(SIGPROF));
    assert_true(sampler_give_signal_away(SIGPROF));
    assert_true(sampler_uses(LAST_FREE));
    assert_int_equal(atomic_load(&sampler.taken), 1);
}

/* The end of the process moves all timers: a thread that starts sampling must not arm one then. */
static void the_end_waits_for_a_change(void **state) {
    (void)state;
    changes = 0;
    atomic_store(&sampler.moving, true);
    kernel.meanwhile = another_change_begins;
    sampler_stop();
    assert_int_equal(changes, CHANGES);
    assert_true(is_default(SIGPROF));
    assert_int_equal(timers_of(SIGPROF), 0);
}

/* A handler that leaves by siglongjmp(), or takes the signal itself, would leave it half done. */
static void no_handler_runs_while_the_signal_is_moved(void **state) {
    (void)state;
    sigset_t mask;
    assert_true(sampler_begin_move(&sampler));
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_true(sigismember(&mask, SIGALRM) && sigismember(&mask, SIGPROF));
    sampler_end_move(&sampler);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGALRM) || sigismember(&mask, SIGPROF));
}

/* The thread that was at it is in the parent alone. */
static void a_child_that_nobody_knows_of_does_not_wait(void **state) {
    (void)state;
    atomic_store(&sampler.moving, true);
    sampler.pid = getpid() + 1;
    sampler_wait_stable();
    assert_false(atomic_load(&sampler.waited_in_vain));
    assert_false(sampler_give_signal_away(SIGPROF));
    assert_true(sampler_uses(SIGPROF));
}

static void code_that_we_do_not_see_meets_an_unnamed_signal(void **state) {
    (void)state;
    sampler_choose_unnamed_signal();
    assert_true(is_default(SIGPROF));
    assert_true(sampler_uses(LAST_FREE));
    assert_int_equal(atomic_load(&sampler.taken), 0);
    sampler_choose_unnamed_signal(); /* it has one */
    assert_true(sampler_uses(LAST_FREE));
}

/* By a bare system call, or by libc from within. */
static void a_handler_set_past_us_stays(void **state) {
    (void)state;
    sampler_check_signal();
    assert_true(sampler_uses(SIGPROF));
    use(SIGPROF);
    sampler_check_signal();
    assert_ptr_equal(kernel.actions[SIGPROF].sa_handler, of_the_program);
    assert_true(sampler_uses(LAST_FREE));
    assert_int_equal(atomic_load(&sampler.taken), 1);
}

static void the_program_sees_what_it_believes(void **state) {
    (void)state;
    sampler.believed.sa_handler = SIG_IGN;
    assert_ptr_equal(sampler_action_seen(&kernel.actions[SIGPROF]).sa_handler, SIG_IGN);
    use(SIGUSR1);
    assert_ptr_equal(sampler_action_seen(&kernel.actions[SIGUSR1]).sa_handler, of_the_program);
}

/* --- the end, and fork --- */

static void at_the_end_nothing_is_left(void **state) {
    (void)state;
    sampler_stop();
    assert_true(is_default(SIGPROF));
    assert_int_equal(timers_of(SIGPROF), 0);
    sampler_stop();
    assert_true(is_default(SIGPROF));
}

/* Without it the timer's signal would end the process. */
static void while_a_timer_goes_on_the_handler_stays(void **state) {
    (void)state;
    kernel.keeps_timers = true;
    sampler_stop();
    assert_true(is_handled_by_us(SIGPROF));
    assert_false(sampler_uses(SIGPROF));
}

static void a_child_is_not_in_the_middle_of_a_move(void **state) {
    (void)state;
    atomic_store(&sampler.moving, true);
    sampler.pid = 0;
    memset(kernel.timers, 0, sizeof kernel.timers); /* not inherited */
    sampler_after_fork();
    assert_false(atomic_load(&sampler.moving));
    assert_int_equal(sampler.pid, getpid());
    assert_int_equal(timers_of(SIGPROF), 1);
}

/* --- alternate stacks --- */

static void a_stack_that_threads_share_is_not_used(void **state) {
    (void)state;
    const struct stack_range shared = {1 << 20, 2 << 20};
    const struct stack_range small = {1 << 20, (1 << 20) + 256};
    assert_int_equal(sampler_judge_signal_stack(thread, small), SIGNAL_STACK_SMALL);
    assert_int_equal(sampler_judge_signal_stack(thread, shared), SIGNAL_STACK_FINE);
    assert_true(kernel.actions[SIGPROF].sa_flags & SA_ONSTACK);
    assert_int_equal(sampler_judge_signal_stack(other, shared), SIGNAL_STACK_FINE);
    assert_false(kernel.actions[SIGPROF].sa_flags & SA_ONSTACK);
    const struct stack_range own = {4 << 20, 5 << 20};
    assert_int_equal(sampler_judge_signal_stack(other, own), SIGNAL_STACK_SHARED);
    sampler_avoid_signal_stack(other, SIGNAL_STACK_SHARED);
    assert_int_equal(timers_of(SIGPROF), ALL_TIMERS - 1);
    assert_int_equal(other->dropped[DROP_SHARED_SIGNAL_STACK], 1);
    sampler_avoid_signal_stack(other, SIGNAL_STACK_FINE);
    assert_int_equal(timers_of(SIGPROF), ALL_TIMERS);
}

static const struct stack_range one_stack = {1 << 20, 2 << 20};
static const struct stack_range own_stack = {4 << 20, 5 << 20};

static bool is_in_place(void) {
    return !(kernel.actions[SIGPROF].sa_flags & SA_ONSTACK);
}

/* The stack is still known as shared when one thread alone comes to it. */
static void a_stack_that_threads_shared_stays_known(void **state) {
    (void)state;
    assert_int_equal(sampler_judge_signal_stack(thread, one_stack), SIGNAL_STACK_FINE);
    assert_int_equal(sampler_judge_signal_stack(other, one_stack), SIGNAL_STACK_FINE);
    assert_true(is_in_place());
    atomic_store(&thread->tid, 0);
    atomic_store(&other->tid, 0);
    struct thread_state *const later = begin_thread((uint32_t)gettid());
    assert_int_equal(sampler_judge_signal_stack(later, one_stack), SIGNAL_STACK_FINE);
    assert_int_equal(sampler_judge_signal_stack(later, own_stack), SIGNAL_STACK_SHARED);
}

/* Beside a thread with a stack of its own one thread has the stack that others came to as well. */
static void a_thread_that_has_the_stack_keeps_it(void **state) {
    struct thread_state *const owner = begin_thread((uint32_t)gettid());
    (void)state;
    assert_int_equal(sampler_judge_signal_stack(owner, own_stack), SIGNAL_STACK_FINE);
    assert_int_equal(sampler_judge_signal_stack(thread, one_stack), SIGNAL_STACK_FINE);
    assert_int_equal(sampler_judge_signal_stack(other, one_stack), SIGNAL_STACK_SHARED);
    assert_int_equal(sampler_judge_signal_stack(thread, one_stack), SIGNAL_STACK_FINE);
    assert_int_equal(sampler_judge_signal_stack(other, one_stack), SIGNAL_STACK_SHARED);
    atomic_store(&thread->tid, 0);
    struct thread_state *const later = begin_thread((uint32_t)gettid());
    assert_int_equal(sampler_judge_signal_stack(later, one_stack), SIGNAL_STACK_FINE);
    assert_int_equal(sampler_judge_signal_stack(other, one_stack), SIGNAL_STACK_SHARED);
}

/* --- two threads at one stack at once ---
 *
 * The first judges, and asks the kernel whether a thread has ended. In that moment the second
 * comes, and goes on until it is done or waits. */

enum { ENDED_THREAD = 0x7ffffffe };

static struct {
    struct thread_state *slot; /* of the second */
    bool came;
    pthread_t thread;
    sem_t stands; /* it is done, or waits */
    sem_t goes_on;
    bool waited;
    struct stack_range noted_as_it_waits;
    enum signal_stack_use use;
} second;

static void *comes_to_the_stack(void *unused) {
    second.use = sampler_judge_signal_stack(second.slot, one_stack);
    sem_post(&second.stands);
    return unused;
}

static void second_comes(long number, const long a[6]) {
    if (number == SYS_tgkill && a[1] == ENDED_THREAD && !second.came) {
        second.came = true;
        assert_int_equal(pthread_create(&second.thread, NULL, comes_to_the_stack, NULL), 0);
        sem_wait(&second.stands);
    } else if (number == SYS_nanosleep && !second.waited) {
        second.waited = true;
        second.noted_as_it_waits = signal_stacks_noted(second.slot);
        sem_post(&second.stands);
        sem_wait(&second.goes_on);
    }
}

/* Returns what the first is to do; what the second is to do is in `second.use`. */
static enum signal_stack_use judge_at_once(struct thread_state *first, struct thread_state *slot) {
    memset(&second, 0, sizeof second);
    second.slot = slot;
    sem_init(&second.stands, 0, 0);
    sem_init(&second.goes_on, 0, 0);
    kernel.meanwhile = second_comes;
    const enum signal_stack_use use = sampler_judge_signal_stack(first, one_stack);
    sem_post(&second.goes_on);
    assert_true(second.came);
    pthread_join(second.thread, NULL);
    kernel.meanwhile = NULL;
    return use;
}

/* Makes the scan of a thread with a lower slot ask whether this one has ended. */
static void end_with_the_stack(struct thread_state *slot) {
    (void)signal_stacks_note(&threads, slot, one_stack);
    atomic_store(&slot->tid, ENDED_THREAD);
    kernel.ended = ENDED_THREAD;
}

/* The second has the lower slot: the first has not found it there. */
static void two_that_share_a_stack_from_one_moment_on_are_sampled(void **state) {
    (void)state;
    end_with_the_stack(begin_thread((uint32_t)gettid()));
    assert_int_equal(judge_at_once(thread, other), SIGNAL_STACK_FINE);
    assert_int_equal(second.use, SIGNAL_STACK_FINE);
    assert_true(is_in_place());
}

/* The second has the higher slot: each would find the other. */
static void of_two_beside_an_own_stack_the_first_has_it(void **state) {
    struct thread_state *const ended = begin_thread((uint32_t)gettid());
    struct thread_state *const last = begin_thread((uint32_t)gettid());
    (void)state;
    assert_int_equal(sampler_judge_signal_stack(other, own_stack), SIGNAL_STACK_FINE);
    end_with_the_stack(ended);
    assert_int_equal(judge_at_once(thread, last), SIGNAL_STACK_FINE);
    assert_true(second.waited);
    assert_int_equal(second.noted_as_it_waits.high, 0);
    assert_int_equal(second.use, SIGNAL_STACK_SHARED);
    assert_false(is_in_place());
}

static void signal_is_moved(long number, const long a[6]) {
    (void)a;
    if (number == SYS_nanosleep)
        atomic_store(&sampler.moving, false);
}

/* Another thread changes the signal in the moment in which it is to come in place. */
static void a_change_of_the_signal_is_waited_for(void **state) {
    (void)state;
    assert_int_equal(sampler_judge_signal_stack(thread, one_stack), SIGNAL_STACK_FINE);
    atomic_store(&sampler.moving, true);
    kernel.meanwhile = signal_is_moved;
    assert_int_equal(sampler_judge_signal_stack(other, one_stack), SIGNAL_STACK_FINE);
    assert_true(is_in_place());
    assert_false(atomic_load(&sampler.moving) || atomic_load(&sampler.judging));
}

/* The thread that had the turn is in the parent alone. */
static void a_child_does_not_wait_for_a_turn(void **state) {
    (void)state;
    atomic_store(&sampler.judging, true);
    sampler_after_fork();
    assert_false(atomic_load(&sampler.judging));
}

/* --- the handler --- */

static void a_sample_stands_for_all_time_since_the_last(void **state) {
    (void)state;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(seen.samples, 1);
    assert_int_equal((uint64_t)seen.nano, thread->last_cpu_nano);
    const uint64_t first = thread->last_cpu_nano;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal((uint64_t)seen.nano, thread->last_cpu_nano - first);
}

static void time_of_ours_is_not_the_programs(void **state) {
    (void)state;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_false(seen.flags & SAMPLE_OWN_TIME);
    assert_true(deliver_at(in_work_of_ours, SI_TIMER, sampler.timers.mark));
    assert_int_equal(seen.samples, 1);
    assert_true(seen.flags & SAMPLE_OWN_TIME);
}

static void a_signal_that_is_not_ours_is_passed_on(void **state) {
    (void)state;
    assert_false(deliver(SI_TIMER, &kernel));
    assert_false(deliver(SI_USER, NULL));
    assert_false(deliver(SI_QUEUE, sampler.timers.mark)); /* sent, with our timers' value */
    assert_false(deliver(SI_KERNEL, NULL));
    assert_int_equal(seen.samples, 0);
}

static void no_sample_is_taken_within_ours_or_at_the_end(void **state) {
    (void)state;
    own_tls.inside = 1;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    own_tls.inside = 0;
    assert_int_equal(thread->dropped[DROP_BUSY], 1);
    armed = false;
    assert_true(deliver(SI_TIMER, sampler.timers.mark)); /* late; it would end the process */
    assert_int_equal(seen.samples, 0);
    assert_int_equal(thread->last_cpu_nano, 0);
}

static void start_helper(bool calm) {
    (void)calm;
}

static void a_sample_has_the_next_malloc_ask_for_a_helper(void **state) {
    (void)state;
    own_tls.alloc_left = UINT64_MAX;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(own_tls.alloc_left, UINT64_MAX);
    want_helper = start_helper;
    assert_true(deliver(SI_TIMER, sampler.timers.mark));
    assert_int_equal(own_tls.alloc_left, 0);
    assert_int_equal(thread->events, COUNTDOWN_HELPER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_signal_of_the_settings_is_taken, begin),
        cmocka_unit_test_setup(a_signal_in_use_is_not_taken, begin),
        cmocka_unit_test_setup(without_a_free_signal_nothing_is_sampled, begin),
        cmocka_unit_test_setup(what_the_program_takes_it_gets_as_it_was, begin_sampled),
        cmocka_unit_test_setup(where_no_other_is_free_sampling_ends, begin_sampled),
        cmocka_unit_test_setup(one_thread_moves_the_signal_at_a_time, begin_sampled),
        cmocka_unit_test_setup(the_program_takes_the_signal_behind_any_number_of_changes,
                               begin_sampled),
        cmocka_unit_test_setup(a_signal_that_was_taken_meanwhile_is_given_away_once, begin_sampled),
        cmocka_unit_test_setup(the_end_waits_for_a_change, begin_sampled),
        cmocka_unit_test_setup(no_handler_runs_while_the_signal_is_moved, begin_sampled),
        cmocka_unit_test_setup(a_child_that_nobody_knows_of_does_not_wait, begin_sampled),
        cmocka_unit_test_setup(code_that_we_do_not_see_meets_an_unnamed_signal, begin_sampled),
        cmocka_unit_test_setup(a_handler_set_past_us_stays, begin_sampled),
        cmocka_unit_test_setup(the_program_sees_what_it_believes, begin_sampled),
        cmocka_unit_test_setup(at_the_end_nothing_is_left, begin_sampled),
        cmocka_unit_test_setup(while_a_timer_goes_on_the_handler_stays, begin_sampled),
        cmocka_unit_test_setup(a_child_is_not_in_the_middle_of_a_move, begin_sampled),
        cmocka_unit_test_setup(a_stack_that_threads_share_is_not_used, begin_sampled),
        cmocka_unit_test_setup(a_stack_that_threads_shared_stays_known, begin_sampled),
        cmocka_unit_test_setup(a_thread_that_has_the_stack_keeps_it, begin_sampled),
        cmocka_unit_test_setup(two_that_share_a_stack_from_one_moment_on_are_sampled,
                               begin_sampled),
        cmocka_unit_test_setup(of_two_beside_an_own_stack_the_first_has_it, begin_sampled),
        cmocka_unit_test_setup(a_change_of_the_signal_is_waited_for, begin_sampled),
        cmocka_unit_test_setup(a_child_does_not_wait_for_a_turn, begin_sampled),
        cmocka_unit_test_setup(a_sample_stands_for_all_time_since_the_last, begin_sampled),
        cmocka_unit_test_setup(time_of_ours_is_not_the_programs, begin_sampled),
        cmocka_unit_test_setup(a_signal_that_is_not_ours_is_passed_on, begin_sampled),
        cmocka_unit_test_setup(no_sample_is_taken_within_ours_or_at_the_end, begin_sampled),
        cmocka_unit_test_setup(a_sample_has_the_next_malloc_ask_for_a_helper, begin_sampled),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
