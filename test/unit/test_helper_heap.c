/* Tests the helper's heap between threads: threads of the program free and read, and never wait. */
#include "unit.h"

#include "allocator/allocation_path.h"
#include "helper_heap/helper_heap.h"
#include "kernel/profiler_memory.h"
#include "record/thread_table.h"

#include <pthread.h>
#include <sys/wait.h>

static int become_the_helper(void **state) {
    (void)state;
    thread_mark_as_profiler();
    helper_heap_prepare(true, 1 << 20);
    return helper_heap_serves() ? 0 : -1;
}

static int check_nothing_is_left(void **state) {
    (void)state;
    helper_heap_trim();
    assert_int_equal(helper_heap_used(), 0);
    return 0;
}

/* --- the tests --- */

/* Reads the filter before anything else, as free() does. */
static void each_object_is_in_the_filter(void **state) {
    static const size_t sizes[] = {1, 2000, 3 << 20, 40 << 20};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *const object = helper_heap_take(sizes[i], 1);
        assert_non_null(object);
        assert_true(helper_heap_holds(object));
        for (size_t at = 0; at < sizes[i]; at += 512)
            assert_true(address_filter_may_hold(&allocation_path.filter, object + at));
        helper_heap_free(object);
    }
    assert_false(helper_heap_holds(NULL));
    assert_false(helper_heap_holds(&helper_heap));
}

/* Acts as a child of a fork that came when the parent's helper had reserved the heap's addresses,
 * but had not opened their counters yet. */
static void a_child_forked_while_the_heap_is_opened_opens_its_own(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        struct page_runs *const runs = &helper_heap.pages.runs;
        memset(&helper_heap, 0, sizeof helper_heap);
        helper_heap_prepare(true, 1 << 20);
        if (!page_runs_open(runs, 64 << 20, 8 << 20))
            _exit(1);
        const uint32_t reserved = runs->limit;
        helper_heap_after_fork();
        if (!helper_heap_serves() || runs->limit == reserved)
            _exit(2);
        char *const object = helper_heap_take(100, 1);
        _exit(object && helper_heap_holds(object) &&
                      address_filter_may_hold(&allocation_path.filter, object)
                  ? 0
                  : 3);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

enum { THREADS = 4, OBJECTS = 20000 };

static char *objects[THREADS][OBJECTS];

/* Acts as another profiler thread, which is in the middle of a change. */
static void hold_the_lock(void) {
    atomic_store(&helper_heap.lock, 1);
}

static void release_the_lock(void) {
    atomic_store(&helper_heap.lock, 0);
}

/* Frees objects as a thread of the program, while the test keeps the lock: if the thread waited for
 * it, it would never end. */
static void *free_as_the_program(void *which) {
    char **const mine = which;
    for (int i = 0; i < OBJECTS; i++) {
        assert_true(helper_heap_room(mine[i]) >= 24);
        assert_int_equal(mine[i][0], 7);
        helper_heap_free(mine[i]);
    }
    return NULL;
}

static void threads_of_the_program_wait_for_no_lock(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < OBJECTS; k++) {
            objects[i][k] = helper_heap_take(24, 1);
            objects[i][k][0] = 7;
        }
    hold_the_lock();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, free_as_the_program, objects[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    release_the_lock();
}

static void *work_as_ours(void *unused) {
    void *mine[100] = {NULL};
    thread_mark_as_profiler();
    for (int i = 0; i < OBJECTS; i++) {
        void **const object = &mine[i % 100];
        if (*object)
            helper_heap_free(*object);
        *object = helper_heap_take_zeroed((size_t)i % 3000);
        assert_non_null(*object);
    }
    for (int i = 0; i < 100; i++)
        helper_heap_free(mine[i]);
    return unused;
}

static void threads_of_ours_take_turns(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_as_ours, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void work_has_a_ceiling_and_is_given_back(void **state) {
    (void)state;
    void *const before = helper_heap_take(100, 1);
    profiler_tls.inside = OWN_GUARDED;
    helper_heap_begin_work(1 << 20);
    assert_non_null(helper_heap_take(100, 1));
    assert_non_null(helper_heap_take(900 << 10, 1));
    assert_null(helper_heap_take(200 << 10, 1));
    helper_heap_end_work(true);
    profiler_tls.inside = OWN_WORK;
    helper_heap_free(before);
}

static void finished_work_keeps_its_objects(void **state) {
    (void)state;
    profiler_tls.inside = OWN_GUARDED;
    helper_heap_begin_work(1 << 20);
    char *const made = helper_heap_take(100, 1);
    helper_heap_end_work(false);
    helper_heap_begin_work(1 << 20);
    assert_non_null(helper_heap_take(100, 1));
    helper_heap_end_work(true);
    profiler_tls.inside = OWN_WORK;
    assert_true(helper_heap_room(made) >= 100);
    helper_heap_free(made);
}

static int status_of(void (*in_child)(void)) {
    const pid_t child = fork();
    if (child == 0) {
        helper_heap_after_fork();
        in_child();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}

static char *kept;

static void go_on(void) {
    for (int i = 0; i < 1000; i++)
        helper_heap_free(helper_heap_take((size_t)i * 100, 1));
    if (kept[0] != 7 || helper_heap_room(kept) < 100)
        _exit(1);
    helper_heap_free(kept);
}

/* Forks while another profiler thread holds the lock: in the child there is no such thread. */
static void a_child_goes_on(void **state) {
    (void)state;
    kept = helper_heap_take(100, 1);
    kept[0] = 7;
    assert_int_equal(status_of(go_on), 0);
    hold_the_lock();
    assert_int_equal(status_of(go_on), 0);
    release_the_lock();
    helper_heap_free(kept);
}

static void nothing_is_served_before_a_malloc_of_the_programs(void **state) {
    (void)state;
    const struct helper_heap saved = helper_heap;
    memset(&helper_heap, 0, sizeof helper_heap);
    helper_heap_prepare(false, 1 << 20);
    assert_false(helper_heap_serves());
    memcpy(&helper_heap, &saved, sizeof saved);
    profiler_tls.is_profiler_thread = false;
    assert_false(helper_heap_serves());
    profiler_tls.is_profiler_thread = true;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_object_is_in_the_filter, check_nothing_is_left),
        cmocka_unit_test_teardown(a_child_forked_while_the_heap_is_opened_opens_its_own,
                                  check_nothing_is_left),
        cmocka_unit_test_teardown(threads_of_the_program_wait_for_no_lock, check_nothing_is_left),
        cmocka_unit_test_teardown(threads_of_ours_take_turns, check_nothing_is_left),
        cmocka_unit_test_teardown(work_has_a_ceiling_and_is_given_back, check_nothing_is_left),
        cmocka_unit_test_teardown(finished_work_keeps_its_objects, check_nothing_is_left),
        cmocka_unit_test_teardown(a_child_goes_on, check_nothing_is_left),
        cmocka_unit_test_teardown(nothing_is_served_before_a_malloc_of_the_programs,
                                  check_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, become_the_helper, NULL);
}
