/* Tests a stack that was finished later, with an interpreter's frames in it. */
#include "unit.h"

#include "encode/interpreted_stack.h"

#define PY(n) (UINT64_C(1) << FRAME_SOURCE_SHIFT | (n))
#define AT(n) (UINT64_C(127) << FRAME_SOURCE_SHIFT | (n))
enum { MOST = 32 };

/* Lists leaf, odd, f, loop, g, loop, main; each takes 0x10 of the stack. */
static const uint64_t frames[] = {0xa00, 0xb00, 0xc00, 0xe00, 0xd00, 0xe00, 0xf00};
static const uint64_t stack_pointers[] = {0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70};
static const struct native_stack native = {frames, stack_pointers, 7};

#define assert_merged(walked, ...)                                                                 \
    do {                                                                                           \
        uint64_t merged[MOST];                                                                     \
        const uint64_t expected[] = {__VA_ARGS__};                                                 \
        const uint32_t count =                                                                     \
            interpreted_stack(walked, sizeof walked / sizeof *walked, &native, merged, MOST);      \
        assert_int_equal(count, sizeof expected / sizeof *expected);                               \
        assert_memory_equal(merged, expected, sizeof expected);                                    \
    } while (0)

static void groups_stand_where_they_are_run(void **state) {
    (void)state;
    const uint64_t walked[] = {0xa00, 0xb00, AT(0x48), PY(1), PY(2), AT(0x60), PY(3)};
    assert_merged(walked, 0xa00, 0xb00, 0xc00, PY(1), PY(2), 0xd00, PY(3), 0xf00);
}

static void groups_that_the_walker_has_placed_stay(void **state) {
    (void)state;
    const uint64_t walked[] = {0xa00, 0xb00, 0xc00, PY(1), PY(2), 0xd00, AT(0x60), PY(3)};
    assert_merged(walked, 0xa00, 0xb00, 0xc00, PY(1), PY(2), 0xd00, PY(3), 0xf00);
}

static void a_group_without_frames_leaves_the_native_one(void **state) {
    (void)state;
    const uint64_t walked[] = {0xa00, AT(0x48), AT(0x60), PY(3)};
    assert_merged(walked, 0xa00, 0xb00, 0xc00, 0xe00, 0xd00, PY(3), 0xf00);
}

static void groups_above_all_stand_at_the_end(void **state) {
    (void)state;
    const uint64_t walked[] = {0xa00, AT(0x48), PY(1), AT(0x999), PY(9)};
    assert_merged(walked, 0xa00, 0xb00, 0xc00, PY(1), 0xd00, 0xe00, 0xf00, PY(9));
}

static void two_stacks_that_differ_are_not_mixed(void **state) {
    (void)state;
    uint64_t merged[MOST];
    const uint64_t other[] = {0xa00, 0xbad, AT(0x48), PY(1)};
    const uint64_t unmet[] = {0xa00, PY(1), 0xbad, AT(0x48), PY(2)};
    const uint64_t open[] = {0xa00, PY(1)};
    const struct native_stack none = {frames, stack_pointers, 0};
    assert_int_equal(interpreted_stack(other, 4, &native, merged, MOST), 0);
    assert_int_equal(interpreted_stack(unmet, 5, &native, merged, MOST), 0);
    assert_int_equal(interpreted_stack(open, 2, &native, merged, MOST), 0);
    assert_int_equal(interpreted_stack(other, 1, &none, merged, MOST), 0);
    assert_int_equal(interpreted_stack(other, 0, &native, merged, MOST), 0);
}

static void no_more_is_written_than_there_is_room(void **state) {
    (void)state;
    uint64_t merged[MOST + 1] = {0};
    const uint64_t walked[] = {0xa00, AT(0x48), PY(1), PY(2), PY(3), AT(0x60), PY(4)};
    for (uint32_t max = 1; max < 12; max++) {
        merged[max] = 7;
        assert_true(interpreted_stack(walked, 7, &native, merged, max) <= max);
        assert_int_equal(merged[max], 7);
    }
}

static void places_are_left_out(void **state) {
    (void)state;
    uint64_t walked[] = {0xa00, AT(0x48), PY(1), AT(0x60), PY(4)};
    const uint64_t expected[] = {0xa00, PY(1), PY(4)};
    assert_int_equal(frames_without_places(walked, 5, walked), 3);
    assert_memory_equal(walked, expected, sizeof expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_stand_where_they_are_run),
        cmocka_unit_test(groups_that_the_walker_has_placed_stay),
        cmocka_unit_test(a_group_without_frames_leaves_the_native_one),
        cmocka_unit_test(groups_above_all_stand_at_the_end),
        cmocka_unit_test(two_stacks_that_differ_are_not_mixed),
        cmocka_unit_test(no_more_is_written_than_there_is_room),
        cmocka_unit_test(places_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
