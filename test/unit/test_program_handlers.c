/* Tests that the program's actions of signals are its own again once threads get no signal stacks,
 * whatever it sets meanwhile. */
#include "unit.h"

#include "cpu/program_handlers.h"
#include "symbols/next.h"

#include <errno.h>

enum { NUMBER = SIGUSR1 };

/* --- in place of the kernel --- */

static struct {
    struct sigaction action;
    const struct sigaction *programs; /* set by another thread before a call */
    int calls_before;                 /* the number of calls before that change */
} kernel;

static int fake_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    assert_int_equal(number, NUMBER);
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

/* Sets the action before it is read, and between reading and setting it. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_is_the_programs_again),
        cmocka_unit_test(what_another_thread_sets_meanwhile_stays),
        cmocka_unit_test(a_handler_that_is_wrapped_meanwhile_is_the_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
