/* Tests sigaltstack() where the kernel has a stack of ours: each result is the one that the kernel
 * gives to a thread without such a stack. */
#include "unit.h"

#include "cpu/program_stack.h"
#include "record/thread_table.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ROOM = 1 << 16, CALLS = 20000, SLOT = 1 };

static char rooms[2][ROOM];

/* --- the same calls, to us and to the kernel --- */

typedef int stack_function(const stack_t *wanted, stack_t *old);

static int of_the_kernel(const stack_t *wanted, stack_t *old) {
    return (int)syscall(SYS_sigaltstack, wanted, old);
}

static int of_ours(const stack_t *wanted, stack_t *old) {
    return program_stack_exchange(wanted, old, (uintptr_t)__builtin_frame_address(0), false);
}

struct answer {
    int error;
    stack_t old;
};

static uint64_t next_random(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

static stack_t some_stack(uint64_t *random) {
    static const int flags[] = {0,
                                0,
                                SS_ONSTACK,
                                SS_DISABLE,
                                3,
                                7,
                                STACK_DISARMS,
                                STACK_DISARMS | SS_ONSTACK,
                                STACK_DISARMS | SS_DISABLE};
    static const size_t sizes[] = {0, 100, 2047, 2048, 8192, ROOM, ROOM};
    stack_t stack;
    memset(&stack, 0, sizeof stack);
    stack.ss_sp = rooms[next_random(random) % 2];
    stack.ss_flags = flags[next_random(random) % (sizeof flags / sizeof *flags)];
    stack.ss_size = sizes[next_random(random) % (sizeof sizes / sizeof *sizes)];
    return stack;
}

static void call_often(stack_function *function, struct answer *answers) {
    uint64_t random = 1;
    for (int i = 0; i < CALLS; i++) {
        const stack_t wanted = some_stack(&random);
        const bool sets = next_random(&random) % 4;
        const bool asks = next_random(&random) % 4;
        struct answer *const answer = &answers[i];
        errno = 0;
        if (function(sets ? &wanted : NULL, asks ? &answer->old : NULL) != 0)
            answer->error = errno;
    }
}

static bool is_hidden(void) {
    stack_t kernels;
    return of_the_kernel(NULL, &kernels) == 0 &&
           profiler_signal_stack_is(profiler_tls.signal_stack, &kernels);
}

static void *answers_of_the_kernel(void *answers) {
    call_often(of_the_kernel, answers);
    return NULL;
}

static void *answers_of_ours(void *answers) {
    assert_true(program_stack_hide(profiler_signal_stacks_take(SLOT), false));
    call_often(of_ours, answers);
    assert_true(is_hidden());
    return NULL;
}

static void on_a_thread(void *(*run)(void *), void *argument) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
    pthread_join(thread, NULL);
}

static void each_result_is_the_kernels(void **state) {
    static struct answer theirs[CALLS];
    static struct answer ours[CALLS];
    (void)state;
    on_a_thread(answers_of_the_kernel, theirs);
    on_a_thread(answers_of_ours, ours);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(ours[i].error, theirs[i].error);
        assert_ptr_equal(ours[i].old.ss_sp, theirs[i].old.ss_sp);
        assert_int_equal(ours[i].old.ss_flags, theirs[i].old.ss_flags);
        assert_int_equal(ours[i].old.ss_size, theirs[i].old.ss_size);
    }
}

/* --- on the stack itself --- */

static struct answer on_stack[2]; /* after setting another stack, and after a query */
static stack_function *asked;
static ucontext_t outside;
static ucontext_t inside;

static void ask_on_stack(void) {
    const stack_t another = {.ss_sp = rooms[1], .ss_size = ROOM};
    on_stack[0].error = asked(&another, NULL) == 0 ? 0 : errno;
    on_stack[1].error = asked(NULL, &on_stack[1].old) == 0 ? 0 : errno;
}

/* Switches by a context: no handler runs there, and the kernel checks the stack pointer alone. */
static void *run_on_stack(void *function) {
    const stack_t own = {.ss_sp = rooms[0], .ss_size = ROOM};
    asked = *(stack_function **)function;
    if (asked == of_ours)
        assert_true(program_stack_hide(profiler_signal_stacks_take(SLOT), false));
    assert_int_equal(asked(&own, NULL), 0);
    getcontext(&inside);
    inside.uc_stack = own;
    inside.uc_link = &outside;
    makecontext(&inside, ask_on_stack, 0);
    swapcontext(&outside, &inside);
    return NULL;
}

static void a_thread_that_runs_on_its_stack_keeps_it(void **state) {
    stack_function *functions[] = {of_the_kernel, of_ours};
    (void)state;
    for (int i = 0; i < 2; i++) {
        on_a_thread(run_on_stack, &functions[i]);
        assert_int_equal(on_stack[0].error, EPERM);
        assert_int_equal(on_stack[1].error, 0);
        assert_ptr_equal(on_stack[1].old.ss_sp, rooms[0]);
        assert_int_equal(on_stack[1].old.ss_flags, SS_ONSTACK);
    }
}

/* Sets stacks of the least size, which end from 16 bytes to 8 KiB below the caller's frame: our own
 * functions run on such a stack, or between its end and the caller. */
static void *keeps_ours_above_a_small_one(void *unused) {
    enum { LEAST = 2048, STEP = 16, FARTHEST = 8192 };
    const stack_t none = {.ss_flags = SS_DISABLE};
    char *const here = __builtin_frame_address(0);
    assert_true(program_stack_hide(profiler_signal_stacks_take(SLOT), false));
    for (size_t gap = STEP; gap < FARTHEST; gap += STEP) {
        const stack_t small = {.ss_sp = here - gap - LEAST, .ss_size = LEAST};
        assert_int_equal(program_stack_exchange(&small, NULL, (uintptr_t)here, false), 0);
        assert_true(is_hidden());
        assert_int_equal(program_stack_exchange(&none, NULL, (uintptr_t)here, false), 0);
    }
    return unused;
}

static void a_small_stack_below_the_caller_does_not_replace_ours(void **state) {
    (void)state;
    on_a_thread(keeps_ours_above_a_small_one, NULL);
}

/* --- stacks set before us, behind us, and beside us --- */

static stack_t in_room(size_t bytes) {
    return (stack_t){.ss_sp = rooms[0], .ss_size = bytes};
}

static void *finds_what_was_set_before(void *unused) {
    const stack_t before = in_room(ROOM);
    stack_t old;
    assert_int_equal(of_the_kernel(&before, NULL), 0);
    assert_true(program_stack_hide(profiler_signal_stacks_take(SLOT), false));
    assert_int_equal(of_ours(NULL, &old), 0);
    assert_ptr_equal(old.ss_sp, rooms[0]);
    assert_int_equal(old.ss_flags, 0);
    return unused;
}

static void a_stack_from_before_us_is_the_programs(void **state) {
    (void)state;
    on_a_thread(finds_what_was_set_before, NULL);
}

/* Keeps a stack that the program has set by a system call of its own, until libc's function sets
 * another one. */
static void *keeps_a_stack_set_behind_us(void *unused) {
    const stack_t behind = in_room(ROOM);
    const stack_t later = in_room(ROOM / 2);
    stack_t old;
    assert_true(program_stack_hide(profiler_signal_stacks_take(SLOT), false));
    assert_int_equal(of_the_kernel(&behind, NULL), 0);
    assert_int_equal(of_ours(NULL, &old), 0);
    assert_int_equal(old.ss_size, ROOM);
    assert_false(is_hidden());
    assert_int_equal(of_ours(&later, &old), 0);
    assert_int_equal(old.ss_size, ROOM);
    assert_true(is_hidden());
    assert_int_equal(of_ours(NULL, &old), 0);
    assert_int_equal(old.ss_size, ROOM / 2);
    return unused;
}

static void a_stack_set_behind_us_stays(void **state) {
    (void)state;
    on_a_thread(keeps_a_stack_set_behind_us, NULL);
}

/* Acts as in a child of vfork(), which shares the memory of its parent. */
static void *sets_one_for_a_child_alone(void *unused) {
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    const stack_t childs = in_room(ROOM);
    stack_t old;
    assert_true(program_stack_hide(profiler_signal_stacks_take(SLOT), false));
    assert_int_equal(program_stack_exchange(&childs, &old, here, true), 0);
    assert_int_equal(old.ss_flags, SS_DISABLE);
    assert_false(is_hidden());
    assert_int_equal(profiler_tls.signal_stack->latest, 0);
    assert_int_equal(program_stack_exchange(NULL, &old, here, true), 0);
    assert_int_equal(old.ss_size, ROOM);
    return unused;
}

static void a_vfork_childs_stack_is_its_own(void **state) {
    (void)state;
    on_a_thread(sets_one_for_a_child_alone, NULL);
}

static void *finds_ours_again(void *unused) {
    ucontext_t context = {.uc_stack = {.ss_flags = SS_DISABLE}};
    const stack_t taken_away = {.ss_flags = SS_DISABLE};
    assert_true(program_stack_hide(profiler_signal_stacks_take(SLOT), false));
    assert_int_equal(of_the_kernel(&taken_away, NULL), 0);
    program_stack_heal(&context);
    assert_true(profiler_signal_stack_is(profiler_tls.signal_stack, &context.uc_stack));
    context.uc_stack = in_room(ROOM);
    program_stack_heal(&context);
    assert_ptr_equal(context.uc_stack.ss_sp, rooms[0]);
    return unused;
}

static void a_stack_that_was_taken_away_is_set_by_the_next_signal(void **state) {
    (void)state;
    on_a_thread(finds_ours_again, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_result_is_the_kernels),
        cmocka_unit_test(a_thread_that_runs_on_its_stack_keeps_it),
        cmocka_unit_test(a_small_stack_below_the_caller_does_not_replace_ours),
        cmocka_unit_test(a_stack_from_before_us_is_the_programs),
        cmocka_unit_test(a_stack_set_behind_us_stays),
        cmocka_unit_test(a_vfork_childs_stack_is_its_own),
        cmocka_unit_test(a_stack_that_was_taken_away_is_set_by_the_next_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
