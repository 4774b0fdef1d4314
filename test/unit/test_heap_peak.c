/* Tests the live heap at its peak: the wakes of the helper, the peak that is kept, and the times at
 * which it is read, by a clock that the test sets. */
#include "unit.h"

#include "kernel/stepped_memory.h"

#include "heap/heap_peak.h"

#include <pthread.h>
#include <string.h>

enum {
    MAX_LIVE = 65536,
    FEW = 64,
    OBJECTS = 40000,
    STACKS = 1000,
    MILLI = 1000000,
    FIRST_LOOK = 100 * MILLI,
};

static struct live_table live;
static struct heap_peak peak;
static int alarms;

static void ring(void) {
    alarms++;
}

/* --- the clock --- */

static uint64_t now;
static uint64_t reading_takes;

/* Returns the time, which each call advances by `reading_takes`: the clock is read before and after
 * the table. */
static uint64_t clock_of_test(void) {
    const uint64_t told = now;
    now += reading_takes;
    return told;
}

/* --- a heap --- */

static void begin_with(uint64_t max_objects) {
    memset(&peak, 0, sizeof peak);
    assert_true(live_table_start(&live, max_objects));
    assert_true(heap_peak_start(&peak, max_objects));
    heap_peak_set_alarm(&peak, ring);
    alarms = 0;
    now = 1000 * (uint64_t)MILLI;
    reading_takes = 0;
}

static int begin(void **state) {
    (void)state;
    begin_with(MAX_LIVE);
    return 0;
}

static void come(uintptr_t number, uint32_t stack, uint64_t bytes) {
    bool replaced;
    const struct live_object object = {
        .address = (number + 1) * 16, .objects = 2, .size = 1, .bytes = bytes, .stack = stack};
    assert_true(live_table_insert(&live, &object, &replaced));
    heap_peak_grew(&peak, live_table_bytes_live(&live));
}

static void go(uintptr_t number) {
    struct live_object object;
    assert_true(live_table_remove(&live, (number + 1) * 16, &object));
}

static bool look(void) {
    return heap_peak_poll(&peak, &live, clock_of_test);
}

static const struct peak_stack *sums_of(uint32_t stack) {
    for (uint32_t i = 0; i < peak.kept.count; i++)
        if (peak.kept.stacks[i].stack == stack)
            return &peak.kept.stacks[i];
    return NULL;
}

/* --- the alarm --- */

static void a_small_heap_does_not_wake_the_helper(void **state) {
    (void)state;
    come(0, 1, PEAK_FIRST_BYTES - 1);
    assert_int_equal(alarms, 0);
    assert_int_equal(peak.highest, PEAK_FIRST_BYTES - 1);
    assert_true(heap_peak_next_poll(&peak) == UINT64_MAX);
    come(1, 1, 1);
    assert_int_equal(alarms, 1);
    assert_true(heap_peak_next_poll(&peak) <= now);
}

/* Grows the heap tenfold in small steps: each growth of 5 % wakes the helper once. */
static void each_five_percent_wake_once(void **state) {
    (void)state;
    for (uint64_t bytes = PEAK_FIRST_BYTES; bytes < 10 * (uint64_t)PEAK_FIRST_BYTES; bytes += 64)
        heap_peak_grew(&peak, bytes);
    assert_in_range(alarms, 40, 48); /* ln 10 ÷ ln 1.05 = 47.2 */
    const int before = alarms;
    heap_peak_grew(&peak, 9 * (uint64_t)PEAK_FIRST_BYTES);
    assert_int_equal(alarms, before);
}

static void a_peak_that_was_kept_is_rung_for_again_at_five_percent(void **state) {
    (void)state;
    come(0, 1, 100 * (uint64_t)PEAK_FIRST_BYTES);
    assert_true(look());
    come(1, 1, 4 * (uint64_t)PEAK_FIRST_BYTES);
    assert_int_equal(alarms, 1);
    come(2, 1, PEAK_FIRST_BYTES);
    assert_int_equal(alarms, 2);
}

enum { THREADS = 4, STEPS = 100000 };

static void *grow(void *arg) {
    for (uint64_t i = 0; i < STEPS; i++)
        heap_peak_grew(&peak, PEAK_FIRST_BYTES + i * THREADS + (uintptr_t)arg);
    return NULL;
}

static void the_highest_of_all_threads_is_known(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, grow, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(peak.highest, PEAK_FIRST_BYTES + STEPS * THREADS - 1);
}

/* --- what is kept --- */

static void sums_are_by_stack(void **state) {
    (void)state;
    for (uintptr_t i = 0; i < OBJECTS; i++)
        come(i, 1 + (uint32_t)(i % STACKS), 100 + i % STACKS);
    assert_true(look());
    assert_int_equal(peak.kept.count, STACKS);
    assert_int_equal(peak.kept.bytes, live.bytes);
    assert_int_equal(peak.kept.left_out, 0);
    assert_true(peak.kept.unix_nano > 0);
    for (uint32_t i = 0; i < STACKS; i++) {
        assert_true(sums_of(1 + i)->objects == 2.0 * OBJECTS / STACKS);
        assert_int_equal(sums_of(1 + i)->bytes, (100 + i) * (OBJECTS / STACKS));
    }
}

static void only_a_higher_one_replaces_it(void **state) {
    (void)state;
    come(0, 1, 4 * (uint64_t)PEAK_FIRST_BYTES);
    assert_true(look());
    go(0);
    come(1, 2, 3 * (uint64_t)PEAK_FIRST_BYTES);
    now += UINT64_C(1000) * MILLI;
    assert_false(look());
    assert_int_equal(peak.kept.bytes, 4 * (uint64_t)PEAK_FIRST_BYTES);
    assert_non_null(sums_of(1));
    come(2, 3, 2 * (uint64_t)PEAK_FIRST_BYTES);
    now += UINT64_C(1000) * MILLI;
    assert_true(look());
    assert_int_equal(peak.kept.bytes, 5 * (uint64_t)PEAK_FIRST_BYTES);
    assert_null(sums_of(1));
    assert_int_equal(sums_of(2)->bytes, 3 * (uint64_t)PEAK_FIRST_BYTES);
}

/* Visits an object that is freed during the visit, and one that takes its place: the two were never
 * live at once. */
static void objects_that_were_never_live_at_once_are_no_peak(void **state) {
    (void)state;
    const uint64_t bytes = 4 * (uint64_t)PEAK_FIRST_BYTES;
    const struct live_object object = {.objects = 1, .bytes = bytes, .stack = 1};
    come(0, 1, bytes);
    assert_true(heap_peak_begin(&peak, &live));
    heap_peak_add(&peak, &object);
    heap_peak_add(&peak, &object);
    assert_false(heap_peak_end(&peak));
    assert_int_equal(peak.kept.count, 0);
    assert_true(look());
    assert_int_equal(peak.kept.bytes, bytes);
}

/* Frees most of a second peak while it is read. */
static void the_rest_of_a_higher_peak_does_not_replace_it(void **state) {
    (void)state;
    const struct live_object left = {.objects = 1, .bytes = PEAK_FIRST_BYTES, .stack = 2};
    come(0, 1, 4 * (uint64_t)PEAK_FIRST_BYTES);
    assert_true(look());
    come(1, 2, PEAK_FIRST_BYTES);
    assert_true(heap_peak_begin(&peak, &live));
    heap_peak_add(&peak, &left);
    assert_false(heap_peak_end(&peak));
    assert_int_equal(peak.kept.bytes, 4 * (uint64_t)PEAK_FIRST_BYTES);
    assert_non_null(sums_of(1));
    assert_null(sums_of(2));
}

static void a_visit_for_another_reason_is_kept(void **state) {
    (void)state;
    const struct live_object object = {.objects = 1, .bytes = 10, .stack = 1};
    assert_false(heap_peak_begin(&peak, &live)); /* the heap is empty */
    come(0, 1, 10);                              /* too little to wake the helper */
    assert_true(heap_peak_begin(&peak, &live));
    heap_peak_add(&peak, &object);
    assert_true(heap_peak_end(&peak));
    assert_int_equal(sums_of(1)->bytes, 10);
    assert_false(heap_peak_begin(&peak, &live)); /* no higher than the peak that was kept */
}

/* Each object counts, whether or not its stack had room. */
static void stacks_beyond_the_bound_are_left_out(void **state) {
    (void)state;
    begin_with(FEW);
    for (uintptr_t i = 0; i < FEW + 20; i++)
        come(i, 1 + (uint32_t)i, PEAK_FIRST_BYTES);
    assert_true(look());
    assert_int_equal(peak.kept.count, FEW);
    assert_int_equal(peak.kept.left_out, 20);
    assert_int_equal(peak.kept.bytes, (FEW + 20) * (uint64_t)PEAK_FIRST_BYTES);
    now += UINT64_C(1000) * MILLI;
    assert_false(look()); /* objects that were left out are no growth */
}

/* --- when it is read --- */

static void the_helper_rests_ten_times_as_long_as_it_reads(void **state) {
    (void)state;
    reading_takes = 5 * MILLI;
    come(0, 1, 2 * (uint64_t)PEAK_FIRST_BYTES);
    const uint64_t begun = now;
    assert_true(look());
    come(1, 1, 2 * (uint64_t)PEAK_FIRST_BYTES);
    assert_int_equal(heap_peak_next_poll(&peak), begun + 5 * MILLI + 50 * MILLI);
    now = heap_peak_next_poll(&peak) - 1;
    assert_false(look());
    now = heap_peak_next_poll(&peak);
    assert_true(look());
}

static void vanishing_peaks_are_polled_ever_more_rarely(void **state) {
    (void)state;
    static const uint64_t rests[] = {20, 40, 80, 160, 320, 640, 1000, 1000};
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        come(0, 1, 2 * (uint64_t)PEAK_FIRST_BYTES);
        go(0);
        const uint64_t looked = now;
        assert_true(heap_peak_next_poll(&peak) <= now);
        assert_false(look());
        assert_true(heap_peak_next_poll(&peak) == UINT64_MAX);
        come(0, 1, 2 * (uint64_t)PEAK_FIRST_BYTES);
        go(0);
        assert_int_equal(heap_peak_next_poll(&peak), looked + rests[i] * MILLI);
        now = heap_peak_next_poll(&peak);
    }
    assert_in_range(alarms, 1, 2 * sizeof rests / sizeof *rests);
    come(0, 1, 2 * (uint64_t)PEAK_FIRST_BYTES);
    assert_true(look());
    come(1, 1, PEAK_FIRST_BYTES);
    assert_int_equal(heap_peak_next_poll(&peak), now + 10 * MILLI);
}

/* Grows by less than 5 % at a time, so that no allocation wakes the helper. */
static void a_growing_peak_is_polled_again(void **state) {
    (void)state;
    come(0, 1, 100 * (uint64_t)PEAK_FIRST_BYTES);
    assert_true(look());
    for (uint64_t put_off = FIRST_LOOK; put_off <= 8 * (uint64_t)FIRST_LOOK; put_off *= 2) {
        come(put_off, 1, 1);
        assert_int_equal(heap_peak_next_poll(&peak), now + put_off);
        now = heap_peak_next_poll(&peak) - 1;
        assert_false(look());
        now++;
        assert_true(look());
    }
    now = heap_peak_next_poll(&peak);
    assert_false(look()); /* the heap has not grown */
    assert_true(heap_peak_next_poll(&peak) == UINT64_MAX);
    assert_int_equal(alarms, 1);
}

/* --- stacks --- */

static struct stack_store store;

static void carry(void *lost) {
    *(uint32_t *)lost += heap_peak_evacuate(&peak, &store);
}

static uint32_t keep_stack(uint64_t frame, uint32_t depth) {
    uint64_t frames[512] = {frame};
    return stack_store_keep(&store, stack_store_epoch(&store) & 1, frames, depth, 0, 7);
}

static uint32_t turn(void) {
    uint32_t lost = 0;
    store.flip_at = 0;
    stack_store_flip(&store, carry, &lost);
    return lost;
}

static void stacks_of_freed_objects_are_carried_over(void **state) {
    (void)state;
    assert_true(stack_store_start(&store));
    for (uintptr_t i = 0; i < STACKS; i++)
        come(i, keep_stack(1000 + i, 3), PEAK_FIRST_BYTES);
    assert_true(look());
    for (uintptr_t i = 0; i < STACKS; i++)
        go(i);
    for (int turns = 1; turns <= 3; turns++) {
        bool seen[STACKS] = {false};
        assert_int_equal(turn(), 0);
        assert_int_equal(peak.kept.count, STACKS);
        for (uint32_t i = 0; i < STACKS; i++) {
            const uint32_t reference = peak.kept.stacks[i].stack;
            assert_int_equal(stack_store_arena(reference), turns & 1);
            seen[stack_store_at(&store, reference)->frames[0] - 1000] = true;
        }
        for (int i = 0; i < STACKS; i++)
            assert_true(seen[i]);
    }
}

/* Fills four fifths with stacks of live objects, before the stacks of the peak are kept. */
static void fill_and_carry(void *lost) {
    for (uint64_t i = 0; i < STACK_STORE_BYTES / 5 * 4 / (400 * sizeof(uint64_t)); i++)
        assert_int_not_equal(keep_stack(2000 + i, 400), STACK_NONE);
    carry(lost);
}

static void stacks_without_room_are_lost_and_counted(void **state) {
    (void)state;
    uint32_t lost = 0;
    assert_true(stack_store_start(&store));
    for (uintptr_t i = 0; i < 10; i++)
        come(i, keep_stack(1000 + i, 500), PEAK_FIRST_BYTES);
    assert_true(look());
    store.flip_at = 0;
    stack_store_flip(&store, fill_and_carry, &lost);
    assert_int_equal(lost, 10);
    assert_int_equal(peak.kept.count, 0);
}

/* --- fork --- */

static void a_child_begins_without_a_peak(void **state) {
    (void)state;
    come(0, 1, 4 * (uint64_t)PEAK_FIRST_BYTES);
    assert_true(look());
    live_table_reset(&live);
    heap_peak_reset(&peak);
    assert_int_equal(peak.kept.count, 0);
    assert_int_equal(peak.kept.bytes, 0);
    assert_int_equal(peak.highest, 0);
    assert_true(heap_peak_next_poll(&peak) == UINT64_MAX);
    come(1, 2, PEAK_FIRST_BYTES);
    assert_int_equal(alarms, 2);
    assert_true(look());
    assert_null(sums_of(1));
    assert_int_equal(sums_of(2)->bytes, PEAK_FIRST_BYTES);
}

static void without_the_type_no_peak_is_watched(void **state) {
    (void)state;
    struct heap_peak none = {.watches = false};
    heap_peak_set_alarm(&none, ring);
    heap_peak_grew(&none, UINT64_MAX / 2);
    heap_peak_reset(&none);
    assert_int_equal(alarms, 0);
    assert_int_equal(none.highest, 0);
    assert_true(heap_peak_next_poll(&none) == UINT64_MAX);
    assert_false(heap_peak_begin(&none, &live));
}

int main(void) {
    stepped_memory_allow(UINT64_MAX);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_small_heap_does_not_wake_the_helper, begin),
        cmocka_unit_test_setup(each_five_percent_wake_once, begin),
        cmocka_unit_test_setup(a_peak_that_was_kept_is_rung_for_again_at_five_percent, begin),
        cmocka_unit_test_setup(the_highest_of_all_threads_is_known, begin),
        cmocka_unit_test_setup(sums_are_by_stack, begin),
        cmocka_unit_test_setup(only_a_higher_one_replaces_it, begin),
        cmocka_unit_test_setup(objects_that_were_never_live_at_once_are_no_peak, begin),
        cmocka_unit_test_setup(the_rest_of_a_higher_peak_does_not_replace_it, begin),
        cmocka_unit_test_setup(a_visit_for_another_reason_is_kept, begin),
        cmocka_unit_test_setup(stacks_beyond_the_bound_are_left_out, begin),
        cmocka_unit_test_setup(the_helper_rests_ten_times_as_long_as_it_reads, begin),
        cmocka_unit_test_setup(vanishing_peaks_are_polled_ever_more_rarely, begin),
        cmocka_unit_test_setup(a_growing_peak_is_polled_again, begin),
        cmocka_unit_test_setup(stacks_of_freed_objects_are_carried_over, begin),
        cmocka_unit_test_setup(stacks_without_room_are_lost_and_counted, begin),
        cmocka_unit_test_setup(a_child_begins_without_a_peak, begin),
        cmocka_unit_test_setup(without_the_type_no_peak_is_watched, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
