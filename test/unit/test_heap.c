/* Tests the live heap: its table and its filter agree, whatever interrupts what, and a longer
 * interval keeps its bound. */
#include "unit.h"

#include "kernel/stepped_memory.h"

#include "allocator/allocation_path.h"
#include "heap/heap.h"
#include "poisson.h"
#include "recorder_fixture.h"

#include <pthread.h>

enum {
    COMING = 1 << 20,
    SIFTINGS = 2000,
    GRANULE = 1 << ADDRESS_FILTER_GRANULE_BITS,
    MAX_LIVE = 64,
    OBJECT = 1000
};

static struct log logged;
static struct heap heap;
static const struct config config = {.alloc_interval = 1,
                                     .wait_frequency = 49,
                                     .lock_interval = 10000,
                                     .heap_max_live = MAX_LIVE,
                                     .types = PROFILE_HEAP | PROFILE_HEAP_PEAK};

static int start(void **state) {
    (void)state;
    if (!recorder_is_ready(16))
        return -1;
    profiler_tls.thread = begin_thread(1);
    heap_start(&heap, &config, &logged, &recorder);
    return profiler_tls.thread && heap.tracks_live ? 0 : -1;
}

static size_t counters_in_use(void) {
    size_t used = 0;
    for (size_t i = 0; i < ADDRESS_FILTER_ENTRIES; i++)
        used += atomic_load(&allocation_path.filter.counters)[i] != 0;
    return used;
}

/* Begins with no live objects, whatever a test has left. */
static int empty(void **state) {
    (void)state;
    heap_after_fork(&heap);
    atomic_store(&heap.interval, config.alloc_interval);
    heap_draw_gap(&heap, profiler_tls.thread);
    atomic_store(&recorder.dropped[DROP_BUSY], 0);
    atomic_store(&recorder.dropped[DROP_PEAK_FULL], 0);
    assert_int_equal(heap.live.count, 0);
    assert_int_equal(counters_in_use(), 0);
    return 0;
}

/* --- an object is added while another thread removes each object --- */

static _Atomic bool is_over;
static _Atomic int siftings;

static bool keep_none(void *arg, struct live_object *object) {
    (void)arg, (void)object;
    return false;
}

static void is_gone(void *arg, const struct live_object *object) {
    (void)arg;
    address_filter_change(&allocation_path.filter, (const void *)object->address, -1);
}

static void *sift(void *arg) {
    while (!atomic_load(&is_over)) {
        live_table_retain_if(&heap.live, &(struct live_retainer){keep_none, is_gone, NULL});
        siftings++;
    }
    return arg;
}

/* Adds and frees objects while another thread removes each object. The filter counts an object
 * before the table has it: otherwise its removal might come before the count. Its address would
 * then count for ever, or displace a neighbour's, whose free is missed. */
static void the_filter_knows_an_object_before_the_table(void **state) {
    (void)state;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, sift, NULL), 0);
    for (uintptr_t i = 0; i < COMING || siftings < SIFTINGS; i++) {
        struct live_object object = {.objects = 1, .size = 1, .stack = 1};
        object.address = (1 + i % ADDRESS_FILTER_ENTRIES) * GRANULE;
        heap_put_back(&heap, &object);
        (void)heap_forget(&heap, (void *)object.address, &object);
    }
    atomic_store(&is_over, true);
    pthread_join(other, NULL);
    assert_int_equal(heap.live.count, 0);
    assert_int_equal(counters_in_use(), 0);
}

/* --- an object at an address that has one --- */

static void an_address_is_counted_once(void **state) {
    (void)state;
    struct live_object object;
    heap_sample(&heap, (void *)4096, 1);
    heap_sample(&heap, (void *)4096, 1); /* the object was freed without a call of ours */
    assert_int_equal(counters_in_use(), 1);
    assert_true(heap_forget(&heap, (void *)4096, &object));
    assert_int_equal(counters_in_use(), 0);
    assert_false(heap_forget(&heap, (void *)4096, &object));
    assert_int_equal(counters_in_use(), 0);
}

/* --- a realloc that fails --- */

static void carry_nothing(void *arg) {
    (void)arg;
}

static void turn_stack_store(void) {
    heap.stacks.flip_at = 0;
    stack_store_flip(&heap.stacks, carry_nothing, NULL);
}

/* Flips the store twice before an object is put back: its reference then leads into the same arena
 * again, but to no stack of its own, so the object is dropped. */
static void an_object_that_is_put_back_has_its_own_stack(void **state) {
    (void)state;
    struct live_object object;
    heap_sample(&heap, (void *)4096, 1);
    assert_true(heap_forget(&heap, (void *)4096, &object));
    heap_put_back(&heap, &object);
    assert_int_equal(heap.live.count, 1);
    assert_true(heap_forget(&heap, (void *)4096, &object));
    turn_stack_store();
    turn_stack_store();
    heap_put_back(&heap, &object);
    assert_int_equal(heap.live.count, 0);
    assert_int_equal(recorder.dropped[DROP_BUSY], 1);
}

/* Puts nothing back: a thread that has left makes no system call of ours, and nothing is live in a
 * heap that has stopped. */
static void nothing_is_put_back_at_the_end(void **state) {
    (void)state;
    struct live_object object;
    heap_sample(&heap, (void *)4096, 1);
    assert_true(heap_forget(&heap, (void *)4096, &object));
    heap_stop(&heap);
    heap_put_back(&heap, &object);
    atomic_store(&heap.stopped, false);
    profiler_tls.inside = OWN_WORK;
    heap_put_back(&heap, &object);
    profiler_tls.inside = 0;
    assert_int_equal(heap.live.count, 0);
    assert_int_equal(recorder.dropped[DROP_BUSY], 2);
}

/* --- stacks --- */

/* Checks that each object still has its own stack when the store has flipped. */
static void stacks_are_carried_over(void **state) {
    (void)state;
    struct live_object object;
    heap_sample(&heap, (void *)4096, 1);
    heap.stacks.flip_at = 0;
    heap_maintain(&heap);
    assert_true(heap_forget(&heap, (void *)4096, &object));
    assert_int_equal(stack_store_arena(object.stack), stack_store_epoch(&heap.stacks) & 1);
    assert_true(stack_store_at(&heap.stacks, object.stack)->frame_count >= 2);
}

/* --- the bound --- */

static void check_weight(void *arg, const struct live_object *object) {
    const double weight = poisson_weight(OBJECT, heap_interval(&heap));
    assert_true(object->objects > weight * 0.999 && object->objects < weight * 1.001);
    *(double *)arg += object->objects;
}

/* Keeps as many objects as would have been sampled at the new interval, each with its weight
 * there. */
static void beyond_the_bound_the_interval_grows(void **state) {
    (void)state;
    double objects = 0;
    for (uintptr_t i = 1; i <= MAX_LIVE; i++)
        heap_sample(&heap, (void *)(i * GRANULE), OBJECT);
    assert_int_equal(heap.live.count, MAX_LIVE);
    assert_int_equal(heap_interval(&heap), 1);
    heap_sample(&heap, (void *)((MAX_LIVE + 1) * (uintptr_t)GRANULE), OBJECT);
    assert_true(heap_interval(&heap) >= 2 * OBJECT); /* twice the live bytes, by the bound */
    assert_true(heap_interval(&heap) < 8 * OBJECT);
    assert_in_range(heap.live.count, 1, MAX_LIVE - 1);
    assert_int_equal(counters_in_use(), heap.live.count);
    live_table_visit(&heap.live, check_weight, &objects);
    assert_true(objects > MAX_LIVE / 4 && objects < MAX_LIVE * 4);
    assert_false(atomic_load(&heap.subsampling));
}

/* Draws the next gap with the new mean. */
static void a_gap_is_of_the_present_interval(void **state) {
    (void)state;
    uint64_t sum = 0;
    atomic_store(&heap.interval, 1 << 20);
    for (int i = 0; i < 1000; i++) {
        heap_draw_gap(&heap, profiler_tls.thread);
        sum += profiler_tls.alloc_left;
    }
    assert_int_equal(profiler_tls.thread->gap_interval, 1 << 20);
    assert_true(sum / 1000 > (1 << 20) * 0.8 && sum / 1000 < (1 << 20) * 1.2);
}

/* --- the peak --- */

static void count_visited(void *arg, const struct live_object *object) {
    (void)object;
    ++*(int *)arg;
}

static void insert_directly(uintptr_t number) {
    bool replaced;
    const struct live_object object = {
        .address = number * GRANULE, .objects = 1, .bytes = OBJECT, .stack = (uint32_t)number};
    assert_true(live_table_insert(&heap.live, &object, &replaced));
    heap_peak_grew(&heap.peak, live_table_bytes_live(&heap.live));
}

/* Makes more stacks than the bound has objects. */
static void stacks_without_room_in_the_peak_are_counted(void **state) {
    (void)state;
    int visited = 0;
    for (uintptr_t i = 1; i <= MAX_LIVE + 10; i++)
        insert_directly(i);
    heap_visit(&heap, count_visited, &visited);
    assert_int_equal(visited, MAX_LIVE + 10);
    assert_int_equal(heap_peak_of(&heap)->count, MAX_LIVE);
    assert_int_equal(recorder.dropped[DROP_PEAK_FULL], 10);
    heap_visit(&heap, count_visited, &visited); /* the peak is no higher */
    assert_int_equal(recorder.dropped[DROP_PEAK_FULL], 10);
}

static void a_sampled_object_is_part_of_the_peak(void **state) {
    (void)state;
    struct live_object object;
    int visited = 0;
    heap_sample(&heap, (void *)4096, OBJECT);
    heap_visit(&heap, count_visited, &visited);
    assert_true(heap_forget(&heap, (void *)4096, &object));
    assert_int_equal(live_table_bytes_live(&heap.live), 0);
    heap_visit(&heap, count_visited, &visited);
    assert_int_equal(visited, 1);
    assert_int_equal(heap_peak_of(&heap)->count, 1);
    assert_int_equal(heap_peak_of(&heap)->stacks[0].bytes, OBJECT);
    heap.stacks.flip_at = 0;
    heap_maintain(&heap);
    const uint32_t stack = heap_peak_of(&heap)->stacks[0].stack;
    assert_int_equal(stack_store_arena(stack), stack_store_epoch(&heap.stacks) & 1);
    assert_true(stack_store_at(&heap.stacks, stack)->frame_count >= 2);
}

/* A new peak wakes the helper, which computes when to read the heap, and reads it. */
static void a_new_peak_wakes_the_helper(void **state) {
    (void)state;
    assert_true(heap_next_poll(&heap) == UINT64_MAX);
    heap_sample(&heap, (void *)4096, PEAK_FIRST_BYTES);
    assert_true(heap_next_poll(&heap) != UINT64_MAX);
    heap_poll(&heap);
    assert_int_equal(heap_peak_of(&heap)->stacks[0].bytes, PEAK_FIRST_BYTES);
    assert_true(heap_peak_of(&heap)->stacks[0].objects == 1);
}

/* Weights grow where objects are dropped: the sum follows. */
static void live_bytes_are_those_of_the_table(void **state) {
    (void)state;
    double objects = 0;
    for (uintptr_t i = 1; i <= MAX_LIVE + 1; i++)
        heap_sample(&heap, (void *)(i * GRANULE), OBJECT);
    live_table_visit(&heap.live, check_weight, &objects);
    assert_true(heap.live.count < MAX_LIVE);
    const double bytes = (double)live_table_bytes_live(&heap.live);
    assert_true(bytes > objects * OBJECT - MAX_LIVE && bytes < objects * OBJECT + MAX_LIVE);
}

/* --- a resize --- */

/* Resizes an object. The sample still stands for as many objects, and its bytes change with its
 * size. */
static void a_resized_object_weighs_as_before(void **state) {
    (void)state;
    struct live_object object = {.objects = 2.5, .size = 10, .bytes = 25};
    heap_resize(&object, 4);
    assert_true(object.size > 3.5 && object.size < 4.5);
    assert_int_equal(object.bytes, 10);
}

/* --- fork --- */

static void a_child_is_not_in_the_middle_of_thinning(void **state) {
    (void)state;
    struct live_object object;
    heap_sample(&heap, (void *)4096, 1);
    atomic_store(&heap.subsampling, true);
    heap_after_fork(&heap);
    assert_false(atomic_load(&heap.subsampling));
    assert_int_equal(heap.live.count, 0);
    assert_int_equal(counters_in_use(), 0);
    assert_false(heap_forget(&heap, (void *)4096, &object));
}

static void a_child_has_no_peak(void **state) {
    (void)state;
    int visited = 0;
    heap_sample(&heap, (void *)4096, OBJECT);
    heap_visit(&heap, count_visited, &visited);
    assert_non_null(heap_peak_of(&heap));
    heap_after_fork(&heap);
    assert_null(heap_peak_of(&heap));
}

int main(void) {
    stepped_memory_allow(UINT64_MAX);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_filter_knows_an_object_before_the_table, empty),
        cmocka_unit_test_setup(an_address_is_counted_once, empty),
        cmocka_unit_test_setup(an_object_that_is_put_back_has_its_own_stack, empty),
        cmocka_unit_test_setup(nothing_is_put_back_at_the_end, empty),
        cmocka_unit_test_setup(stacks_are_carried_over, empty),
        cmocka_unit_test_setup(beyond_the_bound_the_interval_grows, empty),
        cmocka_unit_test_setup(a_gap_is_of_the_present_interval, empty),
        cmocka_unit_test_setup(stacks_without_room_in_the_peak_are_counted, empty),
        cmocka_unit_test_setup(a_sampled_object_is_part_of_the_peak, empty),
        cmocka_unit_test_setup(a_new_peak_wakes_the_helper, empty),
        cmocka_unit_test_setup(live_bytes_are_those_of_the_table, empty),
        cmocka_unit_test_setup(a_resized_object_weighs_as_before, empty),
        cmocka_unit_test_setup(a_child_is_not_in_the_middle_of_thinning, empty),
        cmocka_unit_test_setup(a_child_has_no_peak, empty),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
