/* Tests the signal stacks that the profiler gives to sampled threads: one for each slot, with a
 * guard below it. */
#include "unit.h"

#include "record/profiler_signal_stacks.h"

#include <setjmp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_UNGUARDED = 1024, NEIGHBOURS = 40, UNUSED = 2000 };

static bool ends_by_segv(uintptr_t address) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)address = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void each_slot_has_its_own(void **state) {
    (void)state;
    uintptr_t tops[NEIGHBOURS];
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        const struct profiler_signal_stack *const stack = profiler_signal_stacks_take(i);
        assert_non_null(stack);
        assert_int_equal(stack->high - stack->low, PROFILER_SIGNAL_STACK_BYTES);
        memset((void *)stack->low, 1, PROFILER_SIGNAL_STACK_BYTES);
        tops[i] = stack->high;
        for (uint32_t j = 0; j < i; j++)
            assert_true(tops[j] <= stack->low ||
                        tops[j] - PROFILER_SIGNAL_STACK_BYTES >= stack->high);
    }
    for (uint32_t i = 0; i < NEIGHBOURS; i++) /* the bytes of a stack are none of the table's */
        assert_int_equal(profiler_signal_stacks_take(i)->high, tops[i]);
}

/* Finds the stack as a handler does to learn which thread it is on. */
static void an_address_leads_to_its_stack(void **state) {
    (void)state;
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        struct profiler_signal_stack *const stack = profiler_signal_stacks_take(i);
        const stack_t setting = profiler_signal_stack_setting(stack, 0);
        ucontext_t context = {.uc_stack = setting};
        assert_ptr_equal(profiler_signal_stacks_at(stack->low + 1), stack);
        assert_ptr_equal(profiler_signal_stacks_at(stack->high), stack);
        assert_ptr_not_equal(profiler_signal_stacks_at(stack->low), stack);
        assert_ptr_not_equal(profiler_signal_stacks_at(stack->high + 1), stack);
        assert_ptr_equal(profiler_signal_stacks_of(&context), stack);
        memset(&context, 0, sizeof context);
        assert_null(profiler_signal_stacks_of(&context));
        ucontext_t *const on_it = (ucontext_t *)(void *)(stack->high - 2 * sizeof context);
        /* a handler on the stack has changed the kernel's setting */
        memset(on_it, 0, sizeof *on_it);
        assert_ptr_equal(profiler_signal_stacks_of(on_it), stack);
        assert_true(profiler_signal_stacks_include(stack));
        assert_false(profiler_signal_stacks_include((void *)((uintptr_t)stack + 1)));
    }
    assert_null(profiler_signal_stacks_at(0));
    assert_null(profiler_signal_stacks_at((uintptr_t)&state));
    assert_false(profiler_signal_stacks_include(NULL));
}

static void a_slot_that_is_used_again_has_the_same(void **state) {
    (void)state;
    assert_ptr_equal(profiler_signal_stacks_take(3), profiler_signal_stacks_take(3));
}

static void nothing_is_written_below_a_stack(void **state) {
    (void)state;
    for (uint32_t i = 0; i < NEIGHBOURS; i++)
        assert_true(ends_by_segv(profiler_signal_stacks_take(i)->low - 1));
    assert_false(ends_by_segv(profiler_signal_stacks_take(0)->low));
}

/* A process may have 65,530 mappings, and each guard takes two. */
static void many_threads_share_their_guards(void **state) {
    (void)state;
    assert_true(ends_by_segv(profiler_signal_stacks_take(FIRST_UNGUARDED)->low - 1));
    assert_false(ends_by_segv(profiler_signal_stacks_take(FIRST_UNGUARDED + 2)->low - 1));
}

/* Takes stacks as forks do, one within the other. */
static void a_thread_keeps_its_stack_in_another_slot(void **state) {
    (void)state;
    struct profiler_signal_stack *const first = profiler_signal_stacks_take(20);
    struct profiler_signal_stack *const second = profiler_signal_stacks_take(40);
    profiler_signal_stacks_exchange(20, second);
    assert_ptr_equal(profiler_signal_stacks_take(20), second);
    assert_ptr_equal(profiler_signal_stacks_take(40), first);
    profiler_signal_stacks_exchange(20, first);
    assert_ptr_equal(profiler_signal_stacks_take(20), first);
    assert_ptr_equal(profiler_signal_stacks_take(40), second);
}

static void a_stack_without_a_slot_is_not_given_away(void **state) {
    (void)state;
    const struct rlimit nothing = {0, RLIM_INFINITY};
    struct rlimit before;
    struct profiler_signal_stack *const present = profiler_signal_stacks_take(20);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &nothing), 0);
    profiler_signal_stacks_exchange(UNUSED + 100, present);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_null(profiler_signal_stacks_take(20));
    assert_non_null(profiler_signal_stacks_take(21));
    profiler_signal_stacks_exchange(UNUSED + 100, present); /* as in a child's child */
    assert_ptr_equal(profiler_signal_stacks_take(UNUSED + 100), present);
    struct profiler_signal_stack *const other = profiler_signal_stacks_take(20);
    assert_non_null(other);
    profiler_signal_stacks_exchange(
        21, profiler_signal_stacks_take(21)); /* as in a child of another slot */
    assert_ptr_equal(profiler_signal_stacks_take(20), present);
    assert_ptr_equal(profiler_signal_stacks_take(UNUSED + 100), other);
}

static void without_memory_there_is_none(void **state) {
    (void)state;
    const struct rlimit nothing = {0, RLIM_INFINITY};
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &nothing), 0);
    const struct profiler_signal_stack *const stack = profiler_signal_stacks_take(UNUSED);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_null(stack);
    assert_non_null(profiler_signal_stacks_take(UNUSED));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_slot_has_its_own),
        cmocka_unit_test(an_address_leads_to_its_stack),
        cmocka_unit_test(a_slot_that_is_used_again_has_the_same),
        cmocka_unit_test(nothing_is_written_below_a_stack),
        cmocka_unit_test(many_threads_share_their_guards),
        cmocka_unit_test(a_thread_keeps_its_stack_in_another_slot),
        cmocka_unit_test(a_stack_without_a_slot_is_not_given_away),
        cmocka_unit_test(without_memory_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
