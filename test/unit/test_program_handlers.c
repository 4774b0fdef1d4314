/* Tests that the program's actions of signals are its own again once threads get no signal stacks,
 * whatever it sets meanwhile, and which actions get entries later than they were set. */
#include "unit.h"

#include "cpu/program_handlers.h"
#include "cpu/sampler.h"
#include "kernel/signals_blocked.h"
#include "symbols/next.h"

#include <errno.h>
#include <unistd.h>

enum { NUMBER = SIGUSR1 };

/* --- in place of the kernel --- */

static struct {
    struct sigaction action;
    const struct sigaction *programs; /* set by another thread before a call */
    int calls_before;                 /* the number of calls before that change */
    int calls_in_change;              /* the number of calls while hooks wait */
    bool was_blocked;                 /* the last call came with the signal blocked */
} kernel;

static int fake_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    signal_mask blocked = 0;
    assert_int_equal(number, NUMBER);
    kernel.calls_in_change += atomic_load(&sampler.moving);
    (void)signals_change(SIG_BLOCK, NULL, &blocked);
    kernel.was_blocked = blocked & signal_bit(NUMBER);
    if (kernel.programs && kernel.calls_before-- == 0) {
        kernel.action = *kernel.programs;
        kernel.programs = NULL;
    }
    if (old)
        *old = kernel.action;
    if (action)
        kernel.action = *action;
    return 0;
}

static const struct next_calls calls = {.sigaction = fake_sigaction};

const struct next_calls *next_calls(void) {
    return &calls;
}

const struct next_calls *next_library_calls(void) {
    return &calls;
}

/* --- the tests --- */

static void first(int number) {
    (void)number;
}

static void second(int number) {
    (void)number;
}

static void wrap_first(void) {
    struct sigaction action = {.sa_handler = first, .sa_flags = SA_ONSTACK};
    sigaddset(&action.sa_mask, SIGALRM);
    memset(&kernel, 0, sizeof kernel);
    kernel.action = program_handlers_wrap(NUMBER, &action, false);
    assert_ptr_not_equal(kernel.action.sa_handler, first);
}

static void a_handler_is_the_programs_again(void **state) {
    (void)state;
    wrap_first();
    errno = EAGAIN;
    program_handlers_unwrap();
    assert_int_equal(errno, EAGAIN);
    assert_ptr_equal(kernel.action.sa_handler, first);
    assert_int_equal(kernel.action.sa_flags, SA_ONSTACK);
    assert_int_equal(sigismember(&kernel.action.sa_mask, SIGALRM), 1);
    assert_int_equal(sigismember(&kernel.action.sa_mask, SIGCHLD), 0);
}

/* Has another thread set the action before program_handlers_unwrap() reads it, or between its read
 * and its change. */
static void what_another_thread_sets_meanwhile_stays(void **state) {
    static const struct sigaction others[] = {
        {.sa_handler = second, .sa_flags = SA_RESTART},
        {.sa_handler = first, .sa_flags = SA_RESTART},
        {.sa_handler = SIG_DFL},
        {.sa_handler = SIG_IGN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int before = 0; before < 2; before++) {
            wrap_first();
            kernel.programs = &others[i];
            kernel.calls_before = before;
            program_handlers_unwrap();
            assert_null(kernel.programs);
            assert_ptr_equal(kernel.action.sa_handler, others[i].sa_handler);
            assert_int_equal(kernel.action.sa_flags, others[i].sa_flags);
        }
}

static void a_handler_that_is_wrapped_meanwhile_is_the_programs(void **state) {
    const struct sigaction later = {.sa_handler = second, .sa_flags = SA_ONSTACK};
    (void)state;
    wrap_first();
    const struct sigaction wrapped = program_handlers_wrap(NUMBER, &later, false);
    kernel.programs = &wrapped;
    kernel.calls_before = 1;
    program_handlers_unwrap();
    assert_ptr_equal(kernel.action.sa_handler, second);
}

/* --- entries for handlers without SA_ONSTACK --- */

/* Lets the profiler find libc's rt_sigreturn, in the kernel's real action of the signal. */
static void sample_by_signal(void) {
    static struct modules modules;
    static struct unwinder unwinder = {.modules = &modules};
    static struct recorder recorder = {.unwinder = &unwinder};
    signal(NUMBER, first);
    atomic_store(&sampler.timers.signal, NUMBER);
    sampler.pid = getpid();
    sampler.recorder = &recorder;
    sampler.on = true;
}

static void give_entry_to(struct sigaction action) {
    memset(&kernel, 0, sizeof kernel);
    kernel.action = action;
    program_handlers_give_entries(NUMBER, NUMBER);
}

static void handlers_get_entries_once_cpu_time_is_sampled(void **state) {
    (void)state;
    program_handlers_include_plain();
    assert_false(program_handlers_all_have_entries());
    give_entry_to((struct sigaction){.sa_handler = first});
    assert_ptr_equal(kernel.action.sa_handler, first);
    sample_by_signal();
    program_handlers_give_entries(NUMBER, NUMBER);
    assert_ptr_not_equal(kernel.action.sa_handler, first);
    assert_ptr_equal(program_handlers_seen(NUMBER, &kernel.action).sa_handler, first);
}

/* Gives a handler its entry while hooks wait, as they wait for a change of the sampling signal. */
static void a_handler_gets_its_entry_while_hooks_wait(void **state) {
    (void)state;
    give_entry_to((struct sigaction){.sa_handler = second});
    assert_ptr_not_equal(kernel.action.sa_handler, second);
    assert_int_equal(kernel.calls_in_change, 2);
    assert_true(kernel.was_blocked);
    assert_false(atomic_load(&sampler.moving));
}

/* Go's handlers are set so, and must not get entries. */
static void a_handler_for_the_alternate_stack_stays_as_it_was_set(void **state) {
    (void)state;
    give_entry_to((struct sigaction){.sa_handler = first, .sa_flags = SA_ONSTACK});
    assert_ptr_equal(kernel.action.sa_handler, first);
}

static void an_entry_gets_no_entry(void **state) {
    (void)state;
    give_entry_to((struct sigaction){.sa_handler = first});
    const struct sigaction given = kernel.action;
    give_entry_to(given);
    assert_ptr_equal(kernel.action.sa_handler, given.sa_handler);
    assert_ptr_equal(program_handlers_seen(NUMBER, &kernel.action).sa_handler, first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_is_the_programs_again),
        cmocka_unit_test(what_another_thread_sets_meanwhile_stays),
        cmocka_unit_test(a_handler_that_is_wrapped_meanwhile_is_the_programs),
        cmocka_unit_test(handlers_get_entries_once_cpu_time_is_sampled),
        cmocka_unit_test(a_handler_gets_its_entry_while_hooks_wait),
        cmocka_unit_test(a_handler_for_the_alternate_stack_stays_as_it_was_set),
        cmocka_unit_test(an_entry_gets_no_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
