/* Tests that frames of an interpreter replace the native frames that run them. */
#include "unit.h"

#include "arch_machine.h"
#include "frame.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

#include <string.h>
#include <sys/auxv.h>

enum { MAX_FRAMES = 64, MAX_GROUPS = 4 };

static struct modules modules;
static struct rule_cache rules;
static _Atomic uintptr_t generated;
static struct unwinder unwinder = {.modules = &modules, .rules = &rules, .generated = &generated};

/* Holds an interpreter, of which list_two() lists two functions for each native frame, at the
 * places `at`. */
struct told {
    struct interpreter_frames frames;
    uintptr_t at[MAX_GROUPS];
    uint32_t count;
    uint32_t next;
};

static void list_two(struct interpreter_frames *frames, struct unwind *unwind) {
    struct told *const told = (struct told *)frames;
    for (uint32_t i = 0; i < 2 && unwind->count < unwind->max; i++)
        unwind->frames[unwind->count++] = frame_interned(1, i, told->next);
    told->next++;
    frames->at = told->next < told->count ? told->at[told->next] : 0;
}

/* Writes a frame, and then finds that there is no function: leaves the count as it was. */
static void list_none(struct interpreter_frames *frames, struct unwind *unwind) {
    unwind->frames[unwind->count] = frame_interned(1, 1, 1);
    frames->at = 0;
}

struct walked {
    uint64_t frames[MAX_FRAMES];
    uint32_t count;
    enum unwind_end end;
};

static struct walked walk_here(struct interpreter_frames *interpreter, uint32_t max,
                               struct stack_range stack) {
    struct walked walked;
    uint64_t registers[REGISTER_COUNT];
    REGISTERS_HERE(registers);
    struct unwind unwind = {
        .thread_stack = stack, .frames = walked.frames, .max = max, .interpreter = interpreter};
    walked.end = unwind_walk(&unwinder, registers, &unwind);
    walked.count = unwind.count;
    return walked;
}

static struct stack_range whole_stack(void) {
    return (struct stack_range){4096, getauxval(AT_EXECFN) & ~7ul};
}

/* Describes nested calls. Each level has a word on its stack, whose address is the place of its
 * frames. */
struct nest {
    struct told *told;
    uint32_t depth;
    uint32_t max;
    bool cut;
    uintptr_t returns[MAX_GROUPS + 1];
    struct walked walked;
};

__attribute__((noinline)) static void run_nested(struct nest *nest, uint32_t level) {
    volatile uint64_t word = level;
    nest->told->at[level] = (uintptr_t)&word;
    nest->returns[level] = (uintptr_t)__builtin_return_address(0) - 1;
    if (level > 0) {
        run_nested(nest, level - 1);
    } else {
        struct stack_range stack = whole_stack();
        if (nest->cut) /* the walk ends within the second frame */
            stack.high = nest->told->at[1];
        nest->told->frames.at = nest->told->at[0];
        nest->walked = walk_here(&nest->told->frames, nest->max, stack);
    }
    word++;
}

static struct nest nested(struct told *told, uint32_t max, bool cut) {
    struct nest nest = {.told = told, .max = max, .cut = cut};
    run_nested(&nest, told->count - 1);
    return nest;
}

static struct told told_of(uint32_t count) {
    return (struct told){.frames = {.list = list_two}, .count = count};
}

static void they_take_the_place_of_their_native_frame(void **state) {
    (void)state;
    struct told told = told_of(3);
    const struct nest nest = nested(&told, MAX_FRAMES, false);
    assert_int_equal(nest.walked.end, UNWIND_COMPLETE);
    for (uint32_t i = 0; i < 6; i++) /* behind walk_here() */
        assert_true(nest.walked.frames[1 + i] == frame_interned(1, i % 2, i / 2));
    assert_true(nest.walked.frames[7] == nest.returns[2]);
}

static void a_frame_without_a_function_of_the_language_stays(void **state) {
    (void)state;
    struct told told = told_of(2);
    told.frames.list = list_none;
    const struct nest nest = nested(&told, MAX_FRAMES, false);
    assert_int_equal(nest.walked.end, UNWIND_COMPLETE);
    assert_true(frame_is_address(nest.walked.frames[1]));
    assert_true(nest.walked.frames[2] == nest.returns[0]);
    assert_true(nest.walked.frames[3] == nest.returns[1]);
}

static void the_depth_holds_for_all(void **state) {
    (void)state;
    struct told told = told_of(3);
    const struct nest nest = nested(&told, 4, false);
    assert_int_equal(nest.walked.end, UNWIND_DEPTH);
    assert_int_equal(nest.walked.count, 4);
    assert_true(nest.walked.frames[3] == frame_interned(1, 0, 1));
}

static void remaining_functions_follow_a_truncated_walk(void **state) {
    (void)state;
    struct told told = told_of(3);
    const struct nest nest = nested(&told, MAX_FRAMES, true);
    assert_int_equal(nest.walked.end, UNWIND_TRUNCATED);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(nest.walked.frames[1 + i] == frame_interned(1, i, 0));
    assert_true(nest.walked.frames[nest.walked.count - 1] == frame_interned(1, 1, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_take_the_place_of_their_native_frame),
        cmocka_unit_test(a_frame_without_a_function_of_the_language_stays),
        cmocka_unit_test(the_depth_holds_for_all),
        cmocka_unit_test(remaining_functions_follow_a_truncated_walk),
    };
    assert_true(modules_start(&modules));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
