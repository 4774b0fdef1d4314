/* Tests the stacks of live objects: each is kept once, and moves when the store flips its
 * arenas. */
#include "unit.h"

#include "kernel/stepped_memory.h"

#include "heap/stack_store.h"

static void stack_store_keeps_each_stack_once(void **state) {
    (void)state;
    struct stack_store store;
    assert_true(stack_store_start(&store));
    uint64_t frames[] = {1, 2, 3};
    const uint32_t first = stack_store_keep(&store, 0, frames, 3, 0, 7);
    assert_int_not_equal(first, STACK_NONE);
    assert_int_equal(stack_store_keep(&store, 0, frames, 3, 0, 7), first);
    assert_int_not_equal(stack_store_keep(&store, 0, frames, 3, 1, 7), first);
    assert_int_not_equal(stack_store_keep(&store, 0, frames, 2, 0, 7), first);
    assert_int_equal(stack_store_at(&store, first)->frame_count, 3);
    assert_int_equal(stack_store_at(&store, first)->frames[2], 3);
    uint32_t kept = 0;
    for (frames[0] = 1000; stack_store_keep(&store, 0, frames, 3, 0, 7) != STACK_NONE; frames[0]++)
        kept++;
    assert_true(kept > 100000);
    assert_int_equal(stack_store_keep(&store, 0, (uint64_t[]){1, 2, 3}, 3, 0, 7), first);
}

static struct stack_store turned;
static uint32_t in_use[1000];

static void carry_in_use(void *arg) {
    (void)arg;
    for (size_t i = 0; i < sizeof in_use / sizeof *in_use; i++)
        in_use[i] = stack_store_evacuate(&turned, in_use[i]);
}

/* Keeps ten times the room in stacks, of which a thousand are in use at a time. */
static void stack_store_turns(void **state) {
    (void)state;
    uint64_t frames[10] = {0};
    int turns = 0;
    assert_true(stack_store_start(&turned));
    for (uint64_t i = 0; i < 2000000; i++) {
        const uint32_t arena = stack_store_enter(&turned);
        frames[3] = i;
        const uint32_t kept = stack_store_keep(&turned, arena, frames, 10, 0, i);
        assert_int_not_equal(kept, STACK_NONE);
        assert_int_equal(stack_store_arena(kept), arena);
        in_use[i % 1000] = kept;
        stack_store_leave(&turned, arena);
        if (i >= 1000 && i % 5000 == 0) {
            stack_store_flip(&turned, carry_in_use, NULL);
            turns += stack_store_epoch(&turned) % 2 != arena;
        }
    }
    assert_true(turns > 10);
    for (uint64_t i = 2000000 - 1000; i < 2000000; i++) {
        const struct stored_stack *const stack = stack_store_at(&turned, in_use[i % 1000]);
        assert_int_equal(stack->frames[3], i);
        assert_int_equal(stack->interval, i);
        assert_int_equal(stack->frame_count, 10);
    }
}

/* Frees nothing of the old arena as long as a reader is in it. */
static void an_arena_with_a_reader_is_kept(void **state) {
    (void)state;
    uint64_t frames[100] = {0};
    assert_true(stack_store_start(&turned));
    const uint32_t arena = stack_store_enter(&turned);
    uint32_t kept = STACK_NONE;
    for (frames[0] = 1; frames[0] < 12000; frames[0]++)
        kept = stack_store_keep(&turned, arena, frames, 100, 0, 0);
    for (size_t i = 0; i < sizeof in_use / sizeof *in_use; i++)
        in_use[i] = kept;
    stack_store_flip(&turned, carry_in_use, NULL);
    assert_int_equal(in_use[0], kept);
    assert_int_equal(stack_store_at(&turned, kept)->frames[0], 11999);
    stack_store_leave(&turned, arena);
    stack_store_flip(&turned, carry_in_use, NULL);
    assert_int_not_equal(in_use[0], kept);
    assert_int_equal(stack_store_at(&turned, in_use[0])->frames[0], 11999);
    assert_int_equal(stack_store_at(&turned, kept)->frames[0], 0);
}

int main(void) {
    stepped_memory_allow(UINT64_MAX);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stack_store_keeps_each_stack_once),
        cmocka_unit_test(stack_store_turns),
        cmocka_unit_test(an_arena_with_a_reader_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
