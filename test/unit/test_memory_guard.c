/* Tests that work without memory, or without an end, is abandoned; the helper goes on, and has lost
 * nothing. */
#include "unit.h"

#include "clock.h"
#include "cpu/cpu_timers.h"
#include "helper_heap/helper_heap.h"
#include "helper_heap/memory_guard.h"
#include "kernel/profiler_memory.h"

#include <signal.h>

/* --- the sampler's clock, which is defined elsewhere in the product --- */

static struct cpu_timers timers;

static bool watch_helper(void) {
    return cpu_timers_watch_helper(&timers);
}

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)number;
    if (cpu_timers_sent(&timers, info))
        memory_guard_on_signal(context);
}

static int become_the_helper(void **state) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t all;
    (void)state;
    sigfillset(&action.sa_mask);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigaction(SIGPROF, &action, NULL);
    timers.mark = &timers;
    timers.signal = SIGPROF;
    thread_mark_as_profiler();
    helper_heap_prepare(true, 1 << 20);
    assert_false(memory_guard_is_timed());
    memory_guard_timed_by(watch_helper, &timers.signal);
    return helper_heap_serves() && memory_guard_is_timed() ? 0 : -1;
}

/* Checks that the state is as before, whatever was abandoned. */
static int check_nothing_is_left(void **state) {
    sigset_t mask;
    (void)state;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    assert_true(sigismember(&mask, SIGPROF));
    assert_int_equal(profiler_tls.inside, OWN_WORK);
    assert_false(helper_heap_is_entered());
    assert_int_equal(helper_heap_used(), 0);
    return 0;
}

/* --- code that may be abandoned --- */

__attribute__((section("library"), noinline)) static void spin(uint64_t turns) {
    for (uint64_t i = 0; i < turns; i++)
        __asm__ volatile("" : : "r"(i));
}

extern const char __start_library[];
extern const char __stop_library[];

static void allow_library(void) {
    static struct code_range range;
    range = (struct code_range){(uintptr_t)__start_library, (uintptr_t)__stop_library};
    memory_guard_allow(&range, 1);
}

/* --- the tests --- */

static const struct work_budget little = {20 * NANO_PER_MILLI, 1 << 20};

static void never_end(void *unused) {
    (void)unused;
    for (;;) {
        assert_non_null(helper_heap_take(100, 1));
        helper_heap_free(helper_heap_take(5000, 1));
        spin(100000);
    }
}

static void come_to_an_end(void *done) {
    helper_heap_free(helper_heap_take(100, 1));
    spin(1000);
    *(bool *)done = true;
}

static void work_without_end_is_left(void **state) {
    (void)state;
    allow_library();
    for (int i = 0; i < 5; i++) {
        bool done = false;
        const struct work_budget budget = {20 * NANO_PER_MILLI, 64 << 20};
        assert_false(memory_guard_run(never_end, NULL, &budget));
        assert_int_equal(helper_heap_used(), 0);
        assert_true(memory_guard_run(come_to_an_end, &done, &little));
        assert_true(done);
    }
}

static void eat_memory(void *taken) {
    for (;;) {
        if (!helper_heap_take(1000, 1))
            memory_guard_leave(); /* malloc does so */
        ++*(int *)taken;
    }
}

static void work_that_eats_memory_is_left(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        int taken = 0;
        assert_false(memory_guard_run(eat_memory, &taken, &little));
        assert_true(taken > 900 && taken <= 1024);
        assert_int_equal(helper_heap_used(), 0);
    }
}

/* Spins in code that is not on the list and may hold a lock: it is abandoned when it returns. */
static void spin_elsewhere(void *done) {
    const uint64_t end = thread_cpu_nano() + 4 * little.cpu_nano;
    while (thread_cpu_nano() < end)
        continue;
    *(bool *)done = true;
    spin(UINT64_MAX);
}

static void other_code_is_not_left_in_the_middle(void **state) {
    (void)state;
    bool done = false;
    allow_library();
    assert_false(memory_guard_run(spin_elsewhere, &done, &little));
    assert_true(done);
}

static char *text;

static void measure_for_long(void *done) {
    const uint64_t end = thread_cpu_nano() + 20 * little.cpu_nano;
    size_t (*volatile const length)(const char *) = strlen;
    while (thread_cpu_nano() < end)
        (void)length(text);
    *(bool *)done = true;
}

/* Measures a string for too long. The guard abandons this only where malloc is ours: a malloc of
 * the program's may call such functions under its lock. */
static void functions_for_strings_are_left_where_malloc_is_ours(void **state) {
    (void)state;
    const size_t size = 16 << 20;
    memory_guard_allow(NULL, 0);
    text = profiler_memory_take(size);
    memset(text, 7, size - 1);
    for (int ours = 0; ours < 2; ours++) {
        bool done = false;
        helper_heap_prepare(ours, 1 << 20);
        assert_int_equal(memory_guard_run(measure_for_long, &done, &little), !ours);
        assert_int_equal(done, !ours);
    }
    profiler_memory_unmap(text, size);
}

static void without_a_timer_work_goes_on(void **state) {
    (void)state;
    bool done = false;
    memory_guard_allow(NULL, 0);
    timers.signal = 0;
    assert_false(memory_guard_is_timed());
    assert_true(memory_guard_run(come_to_an_end, &done, &little));
    timers.signal = SIGPROF;
    assert_true(done);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(work_without_end_is_left, check_nothing_is_left),
        cmocka_unit_test_teardown(work_that_eats_memory_is_left, check_nothing_is_left),
        cmocka_unit_test_teardown(other_code_is_not_left_in_the_middle, check_nothing_is_left),
        cmocka_unit_test_teardown(functions_for_strings_are_left_where_malloc_is_ours,
                                  check_nothing_is_left),
        cmocka_unit_test_teardown(without_a_timer_work_goes_on, check_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, become_the_helper, NULL);
}
