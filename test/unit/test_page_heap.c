/* Compares the helper's allocator with a model of it: random calls, every byte of every object
 * checked. Memory behind the usable range must not be touched. */
#include "unit.h"

#include "helper_heap/page_heap.h"

enum { MEBIBYTE = 1 << 20, RANGE = 16 * MEBIBYTE, ALIGNMENT = 4 * MEBIBYTE, SLOTS = 700 };

/* --- the model --- */

struct object {
    unsigned char *bytes;
    size_t size;
    unsigned char fill;
    uint32_t work;
};

static struct page_heap heap;
static struct object objects[SLOTS];
static uint64_t seed = 20261122;

static uint32_t draw(uint32_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % below;
}

/* Draws sizes: most are small, some have pages of their own, few are large. */
static size_t draw_size(void) {
    switch (draw(8)) {
    case 0:
        return draw(40000);
    case 1:
        return 2000 + draw(5000);
    default:
        return draw(300);
    }
}

static void fill(struct object *object) {
    object->fill = (unsigned char)(1 + draw(255));
    memset(object->bytes, object->fill, object->size);
}

static void check(const struct object *object) {
    for (size_t i = 0; i < object->size; i++)
        assert_int_equal(object->bytes[i], object->fill);
    assert_true(page_heap_room(&heap, object->bytes) >= object->size);
}

static void check_zeroed(const struct object *object) {
    for (size_t i = 0; i < object->size; i++)
        assert_int_equal(object->bytes[i], 0);
}

static void take(struct object *object, uint32_t work) {
    const size_t alignment = draw(5) ? 1 : (size_t)16 << draw(12);
    bool zeroed;
    object->size = draw_size();
    object->work = work;
    object->bytes = page_heap_take(&heap, object->size, alignment, work, &zeroed);
    if (!object->bytes)
        return;
    assert_int_equal((uintptr_t)object->bytes % (alignment < 16 ? 16 : alignment), 0);
    if (zeroed)
        check_zeroed(object);
    fill(object);
}

static void give(struct object *object) {
    check(object);
    assert_true(page_heap_give(&heap, object->bytes));
    assert_false(page_heap_give(&heap, object->bytes));
    object->bytes = NULL;
}

static void resize(struct object *object) {
    const size_t size = draw_size();
    check(object);
    if (!page_heap_resize(&heap, object->bytes, size))
        return;
    if (object->size > size)
        object->size = size;
    check(object);
    object->size = size;
    fill(object);
}

static void do_something(uint32_t work) {
    struct object *const object = &objects[draw(SLOTS)];
    if (!object->bytes)
        take(object, work);
    else if (draw(4) == 0)
        resize(object);
    else
        give(object);
}

static void give_all(void) {
    for (int i = 0; i < SLOTS; i++)
        if (objects[i].bytes)
            give(&objects[i]);
}

static int open_heap(void **state) {
    (void)state;
    heap = (struct page_heap){.frozen = 0};
    return page_runs_open(&heap.runs, RANGE, ALIGNMENT) ? 0 : -1;
}

static int close_heap(void **state) {
    (void)state;
    memset(objects, 0, sizeof objects);
    page_runs_close(&heap.runs);
    return 0;
}

/* --- the tests --- */

static void objects_keep_their_content(void **state) {
    (void)state;
    for (int i = 0; i < 300000; i++) {
        do_something(0);
        if (i % 10000 == 0)
            page_runs_trim(&heap.runs);
    }
    give_all();
    assert_int_equal(heap.runs.used, 0);
}

/* Leaves one free run, which goes back to the kernel as a whole. */
static void freed_runs_are_joined(void **state) {
    (void)state;
    bool zeroed;
    for (int i = 0; i < 20000; i++)
        do_something(0);
    give_all();
    assert_int_equal(page_runs_trim(&heap.runs), heap.runs.top);
    assert_int_equal(page_runs_trim(&heap.runs), 0);
    const size_t whole = (size_t)heap.runs.top * PAGE_BYTES;
    objects[0] = (struct object){.size = whole};
    objects[0].bytes = page_heap_take(&heap, whole, 1, 0, &zeroed);
    assert_ptr_equal(objects[0].bytes, heap.runs.base);
    assert_true(zeroed);
    check_zeroed(&objects[0]);
    assert_true(page_heap_give(&heap, objects[0].bytes));
}

static void there_is_a_ceiling(void **state) {
    (void)state;
    bool zeroed;
    assert_null(page_heap_take(&heap, RANGE + 1, 1, 0, &zeroed));
    assert_null(page_heap_take(&heap, SIZE_MAX, 1, 0, &zeroed));
    assert_null(page_heap_take(&heap, 16, (size_t)2 * ALIGNMENT, 0, &zeroed));
    void *const all = page_heap_take(&heap, RANGE, 1, 0, &zeroed);
    assert_non_null(all);
    memset(all, 1, RANGE);
    assert_null(page_heap_take(&heap, 1, 1, 0, &zeroed));
    assert_true(page_heap_give(&heap, all));
    heap.runs.ceiling = 10;
    assert_null(page_heap_take(&heap, 11 * PAGE_BYTES, 1, 0, &zeroed));
    void *const some = page_heap_take(&heap, 9 * PAGE_BYTES, 1, 0, &zeroed);
    assert_non_null(some);
    assert_false(page_heap_resize(&heap, some, 11 * PAGE_BYTES));
    assert_true(page_heap_resize(&heap, some, 10 * PAGE_BYTES));
    assert_null(page_heap_take(&heap, 1, 1, 0, &zeroed));
    assert_true(page_heap_give(&heap, some));
}

static void addresses_of_no_object_are_refused(void **state) {
    (void)state;
    bool zeroed;
    char *const small = page_heap_take(&heap, 100, 1, 0, &zeroed);
    char *const large = page_heap_take(&heap, 3 * PAGE_BYTES, 1, 0, &zeroed);
    char outside;
    assert_false(page_heap_give(&heap, &outside));
    assert_false(page_heap_give(&heap, NULL));
    assert_false(page_heap_give(&heap, small + 8));
    assert_false(page_heap_give(&heap, small + 112));
    assert_false(page_heap_give(&heap, large + 16));
    assert_false(page_heap_give(&heap, large + PAGE_BYTES));
    assert_false(page_heap_give(&heap, large + (ptrdiff_t)2 * PAGE_BYTES));
    assert_false(page_heap_give(&heap, large + (ptrdiff_t)3 * PAGE_BYTES));
    assert_true(page_heap_give(&heap, large));
    assert_true(page_heap_give(&heap, small));
}

/* Lets other profiler threads allocate and free meanwhile: their objects stay, also where the
 * abandoned work had been. */
static void abandoned_work_is_given_back_alone(void **state) {
    (void)state;
    for (uint32_t work = 1; work < 60; work++) {
        for (int i = 0; i < 1500; i++)
            do_something(draw(2) ? work : 0);
        page_heap_give_work(&heap, work);
        for (int i = 0; i < SLOTS; i++) {
            if (!objects[i].bytes)
                continue;
            if (objects[i].work == work)
                objects[i].bytes = NULL;
            else
                check(&objects[i]);
        }
    }
    give_all();
    assert_int_equal(heap.runs.used, 0);
}

/* Freezes the heap, as a forked child does if a thread that it lacks was changing the heap: the
 * earlier objects stay. */
static void frozen_objects_stay(void **state) {
    (void)state;
    static struct object frozen[SLOTS];
    for (int i = 0; i < 5000; i++)
        do_something(0);
    page_heap_freeze(&heap);
    memcpy(frozen, objects, sizeof frozen);
    memset(objects, 0, sizeof objects);
    for (int i = 0; i < SLOTS; i += 2)
        if (frozen[i].bytes)
            assert_true(page_heap_give(&heap, frozen[i].bytes));
    for (int i = 0; i < 20000; i++)
        do_something(0);
    page_runs_trim(&heap.runs);
    for (int i = 0; i < SLOTS; i++)
        if (frozen[i].bytes)
            check(&frozen[i]);
    give_all();
    assert_int_equal(heap.runs.used, heap.frozen);
}

#define OF_A_HEAP(test) cmocka_unit_test_setup_teardown(test, open_heap, close_heap)

int main(void) {
    const struct CMUnitTest tests[] = {
        OF_A_HEAP(objects_keep_their_content),
        OF_A_HEAP(freed_runs_are_joined),
        OF_A_HEAP(there_is_a_ceiling),
        OF_A_HEAP(addresses_of_no_object_are_refused),
        OF_A_HEAP(abandoned_work_is_given_back_alone),
        OF_A_HEAP(frozen_objects_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
