/* Tests finding the thread of each thread state, in hand-made lists. */
#include "unit.h"

#include "frames/python_threads.h"

#include <unistd.h>

static const struct python_offsets offsets = {
    .interpreters_head = 0,
    .interpreter_next = 0,
    .threads_head = 8,
    .thread_next = 0,
    .native_thread_id = 8,
    .current_frame = 16,
};

struct state {
    struct state *next;
    uint64_t tid;
    uint64_t frame;
};

struct interpreter {
    struct interpreter *next;
    struct state *head;
};

enum { STATES = 2000, FIRST_TID = 5000 };
static struct state states[STATES];
static struct interpreter main_interpreter;
static struct interpreter other;
static struct interpreter *runtime;
static struct python python;
static struct python_threads *threads;

static uintptr_t find(uint32_t tid) {
    return python_threads_find(threads, &python, tid);
}

/* Adds a state at the front of the list, as an interpreter does. */
static void add(struct interpreter *interpreter, uint32_t i, uint32_t tid) {
    states[i] = (struct state){interpreter->head, tid, 1};
    interpreter->head = &states[i];
}

/* Searches again until the state is found, for ten seconds at most: after each scan of the lists
 * there is a pause of a hundred times its CPU time. */
static uintptr_t find_in_time(uint32_t tid) {
    uintptr_t found = find(tid);
    for (int i = 0; i < 1000 && !found; i++) {
        usleep(10000);
        found = find(tid);
    }
    return found;
}

static int begin(void **state) {
    (void)state;
    python = (struct python){.runtime = (uintptr_t)&runtime, .offsets = offsets};
    runtime = &main_interpreter;
    main_interpreter = (struct interpreter){0};
    other = (struct interpreter){0};
    threads = python_threads_new();
    return threads ? 0 : -1;
}

static void states_are_found_by_the_kernels_id(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 900; i++)
        add(&main_interpreter, i, FIRST_TID + i);
    for (uint32_t i = 0; i < 900; i++)
        assert_ptr_equal(find(FIRST_TID + i), &states[i]);
    assert_int_equal(find(FIRST_TID + 900), 0);
    assert_int_equal(find(0), 0);
}

static void a_thread_that_came_later_is_found(void **state) {
    (void)state;
    add(&main_interpreter, 0, FIRST_TID);
    assert_ptr_equal(find(FIRST_TID), &states[0]);
    assert_int_equal(find(FIRST_TID + 1), 0);
    add(&main_interpreter, 1, FIRST_TID + 1);
    assert_ptr_equal(find_in_time(FIRST_TID + 1), &states[1]);
    add(&main_interpreter, 2, 0); /* a thread that has not begun */
    assert_int_equal(find(FIRST_TID + 2), 0);
    usleep(20000);
    assert_int_equal(find(FIRST_TID + 2), 0);
    states[2].tid = FIRST_TID + 2;
    assert_ptr_equal(find_in_time(FIRST_TID + 2), &states[2]);
}

static void a_state_of_another_thread_is_not_believed(void **state) {
    (void)state;
    add(&main_interpreter, 0, FIRST_TID);
    assert_ptr_equal(find(FIRST_TID), &states[0]);
    states[0].tid = FIRST_TID + 7; /* the state is used again */
    assert_int_equal(find(FIRST_TID), 0);
    assert_ptr_equal(find_in_time(FIRST_TID + 7), &states[0]);
}

static void of_several_states_that_of_the_newest_interpreter_runs(void **state) {
    (void)state;
    other.next = &main_interpreter;
    runtime = &other;
    add(&main_interpreter, 0, FIRST_TID);
    add(&other, 1, FIRST_TID);
    assert_ptr_equal(find(FIRST_TID), &states[1]);
}

static void a_state_that_runs_nothing_gives_way(void **state) {
    (void)state;
    other.next = &main_interpreter;
    runtime = &other;
    add(&main_interpreter, 0, FIRST_TID);
    add(&other, 1, FIRST_TID);
    states[1].frame = 0;
    assert_ptr_equal(find(FIRST_TID), &states[0]);
    states[0].frame = 0;
    assert_int_equal(find(FIRST_TID), 0);
}

static void lists_that_lead_nowhere_end(void **state) {
    (void)state;
    add(&main_interpreter, 0, FIRST_TID);
    states[0].next = &states[0];
    main_interpreter.next = &main_interpreter;
    assert_ptr_equal(find(FIRST_TID), &states[0]);
    main_interpreter.head = (struct state *)8;
    assert_ptr_equal(find(FIRST_TID), &states[0]);
    assert_int_equal(find(FIRST_TID + 1), 0);
    runtime = (struct interpreter *)(UINTPTR_MAX - 7);
    usleep(20000);
    assert_int_equal(find(FIRST_TID + 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(states_are_found_by_the_kernels_id, begin),
        cmocka_unit_test_setup(a_thread_that_came_later_is_found, begin),
        cmocka_unit_test_setup(a_state_of_another_thread_is_not_believed, begin),
        cmocka_unit_test_setup(of_several_states_that_of_the_newest_interpreter_runs, begin),
        cmocka_unit_test_setup(a_state_that_runs_nothing_gives_way, begin),
        cmocka_unit_test_setup(lists_that_lead_nowhere_end, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
