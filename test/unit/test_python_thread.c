/* Tests finding the calling thread's thread state, without a call into the interpreter. */
#include "unit.h"

#include "frames/python_thread.h"
#include "python_tables.h"

#include <pthread.h>

enum { WORDS = 1024 };
static uint64_t runtime[WORDS];
static uint64_t interpreters[2][WORDS];
static uint64_t states[3][WORDS];
static struct python python;
static pthread_key_t key;

static void set(uint64_t *object, uint32_t offset, const void *value) {
    memcpy((uint8_t *)object + offset, &value, sizeof value);
}

static uintptr_t own_state(void) {
    struct python_reader reader = {.of_another = false};
    return python_thread_state(&python, &reader);
}

/* Sets up two interpreters; the second's first state is another thread's, its second one is this
 * thread's.
 */
static void begin(uint32_t version, const void *table) {
    const struct python_offsets *const o = &python.offsets;
    memset(runtime, 0, sizeof runtime);
    memset(interpreters, 0, sizeof interpreters);
    memset(states, 0, sizeof states);
    python = (struct python){.runtime = (uintptr_t)runtime};
    assert_true(python_offsets_find(version, table, &python.offsets));
    set(runtime, o->interpreters_head, interpreters[0]);
    set(interpreters[0], o->interpreter_next, interpreters[1]);
    set(interpreters[1], o->threads_head, states[0]);
    set(states[0], o->thread_next, states[1]);
    set(states[1], o->thread_id, (const void *)pthread_self());
}

static void setup(void) {
    begin(0x030d00f0, of_3_13);
    assert_int_equal(pthread_setspecific(key, NULL), 0);
}

static void a_state_that_a_key_leads_to_is_found(void **state) {
    (void)state;
    setup();
    assert_int_equal(own_state(), 0);
    pthread_setspecific(key, states[1]);
    assert_int_equal(own_state(), states[1]);
    set(runtime, python.offsets.interpreters_head, NULL); /* the key is known already */
    assert_int_equal(own_state(), states[1]);
    pthread_setspecific(key, NULL);
    assert_int_equal(own_state(), 0);
}

static void *find_in_thread(void *expected) {
    const uintptr_t before = own_state();
    pthread_setspecific(key, expected);
    set(expected, python.offsets.thread_id, (const void *)pthread_self());
    return (void *)(before ? before : own_state());
}

static void every_thread_has_its_own(void **state) {
    pthread_t thread;
    void *found;
    (void)state;
    setup();
    pthread_setspecific(key, states[1]);
    assert_int_equal(own_state(), states[1]);
    assert_int_equal(pthread_create(&thread, NULL, find_in_thread, states[2]), 0);
    assert_int_equal(pthread_join(thread, &found), 0);
    assert_ptr_equal(found, states[2]);
}

/* Acts as a program that has ended the thread state, so that its memory has another use. */
static void a_state_of_another_thread_is_not_believed(void **state) {
    (void)state;
    setup();
    pthread_setspecific(key, states[1]);
    assert_int_equal(own_state(), states[1]);
    set(states[1], python.offsets.thread_id, (const void *)1);
    assert_int_equal(own_state(), 0);
    pthread_setspecific(key, (void *)8); /* nothing is mapped there */
    assert_int_equal(own_state(), 0);
}

/* Acts as a program that begins Python again after its end, with another key. */
static void another_key_is_learned(void **state) {
    pthread_key_t other;
    (void)state;
    setup();
    pthread_setspecific(key, states[1]);
    assert_int_equal(own_state(), states[1]);
    assert_int_equal(pthread_key_create(&other, NULL), 0);
    pthread_setspecific(key, NULL);
    pthread_setspecific(other, states[1]);
    uintptr_t found = 0;
    for (int i = 0; i < 64 && !found; i++) /* the search does not run at each walk */
        found = own_state();
    assert_int_equal(found, states[1]);
    pthread_setspecific(other, NULL);
    assert_int_equal(pthread_key_delete(other), 0);
}

/* The key of 3.11 keeps the first state of a thread. */
static void the_state_that_holds_the_lock_is_meant_among_subinterpreters(void **state) {
    (void)state;
    setup();
    begin(0x030b02f0, of_3_13);
    set(states[2], python.offsets.thread_id, (const void *)pthread_self());
    set(runtime, python.offsets.lock_holder, states[2]);
    pthread_setspecific(key, states[1]);
    assert_int_equal(own_state(), states[2]);
    set(runtime, python.offsets.lock_holder, states[0]); /* another thread holds the lock */
    assert_int_equal(own_state(), states[1]);
}

static __thread void *variables[8];

/* Reads the variable, from 3.15 on. */
static void a_state_that_a_variable_leads_to_is_found(void **state) {
    (void)state;
    setup();
    begin(0x030f02f0, of_3_15);
    python.block = (intptr_t)((uintptr_t)variables - (uintptr_t)pthread_self());
    python.block_bytes = sizeof variables;
    assert_int_equal(own_state(), 0);
    variables[2] = states[1];
    variables[5] = states[1];
    assert_int_equal(own_state(), states[1]);
    variables[2] = NULL; /* the thread has released the interpreter's lock */
    assert_int_equal(own_state(), states[1]);
    variables[5] = NULL;
    assert_int_equal(own_state(), 0);
}

static void lists_that_lead_nowhere_end(void **state) {
    (void)state;
    setup();
    set(states[1], python.offsets.thread_id, NULL);
    set(states[1], python.offsets.thread_next, states[0]);
    set(interpreters[1], python.offsets.interpreter_next, interpreters[0]);
    assert_int_equal(own_state(), 0);
    set(states[1], python.offsets.thread_next, (const void *)UINTPTR_MAX);
    assert_int_equal(own_state(), 0);
    set(runtime, python.offsets.interpreters_head, (const void *)4096);
    assert_int_equal(own_state(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_that_a_key_leads_to_is_found),
        cmocka_unit_test(every_thread_has_its_own),
        cmocka_unit_test(a_state_of_another_thread_is_not_believed),
        cmocka_unit_test(another_key_is_learned),
        cmocka_unit_test(the_state_that_holds_the_lock_is_meant_among_subinterpreters),
        cmocka_unit_test(a_state_that_a_variable_leads_to_is_found),
        cmocka_unit_test(lists_that_lead_nowhere_end),
    };
    fill_tables();
    assert_int_equal(pthread_key_create(&key, NULL), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
