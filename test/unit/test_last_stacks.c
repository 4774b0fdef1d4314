/* Tests the stacks that threads were last seen running on: they are known between harvests and
 * across them. */
#include "unit.h"

#include "recorder_fixture.h"
#include "wait/last_stacks.h"

enum { DEPTH = 32, TID = 4711, MANY = 300 };

static struct last_stacks stacks;

static void see(void *arg, const struct sample *sample) {
    (void)sample;
    ++*(int *)arg;
}

/* Harvests as harvest.c does. Returns the number of records. */
static int harvest(void) {
    int count = 0;
    last_stacks_keep(&stacks, recorder.threads);
    thread_table_harvest(&threads, see, &count);
    return count;
}

static void record(struct thread_state *thread, enum sample_kind kind, uint64_t leaf) {
    const uint64_t frames[] = {leaf, 5};
    const struct sample_context context = {.trace_id = {(uint8_t)leaf}, .span_id = {1}};
    const struct sample sample = {.kind = (uint8_t)kind,
                                  .tid = atomic_load(&thread->tid),
                                  .interval = leaf,
                                  .context = &context,
                                  .frames = frames,
                                  .frame_count = kind == SAMPLE_CPU && !leaf ? 0 : 2,
                                  .values = {1}};
    assert_true(thread_record(&threads, thread, &sample));
}

/* Returns the innermost frame; 0: there is none. */
static uint64_t leaf_of(const struct thread_state *thread) {
    struct sample stack;
    if (!last_stack_of(&threads, thread, &stack))
        return 0;
    assert_int_equal(stack.frame_count, 2);
    assert_int_equal(stack.tid, atomic_load(&thread->tid));
    assert_int_equal(stack.interval, stack.frames[0]);
    assert_int_equal(stack.context->trace_id[0], (uint8_t)stack.frames[0]);
    return stack.frames[0];
}

static void the_last_cpu_sample_counts(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(TID);
    assert_int_equal(leaf_of(thread), 0);
    record(thread, SAMPLE_CPU, 1);
    record(thread, SAMPLE_CPU, 2);
    assert_int_equal(leaf_of(thread), 2);
    record(thread, SAMPLE_ALLOC, 3);
    record(thread, SAMPLE_CPU, 0); /* the profiler's own work */
    assert_int_equal(leaf_of(thread), 2);
    record(thread, SAMPLE_CPU, 1);
    assert_int_equal(leaf_of(thread), 1);
}

static void a_thread_that_runs_no_more_keeps_its_last_stack(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(TID);
    record(thread, SAMPLE_CPU, 7);
    assert_int_equal(harvest(), 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(leaf_of(thread), 7);
        assert_int_equal(harvest(), 0);
    }
    record(thread, SAMPLE_CPU, 8);
    assert_int_equal(leaf_of(thread), 8);
    harvest();
    assert_int_equal(leaf_of(thread), 8);
}

static void a_new_thread_has_not_the_stack_of_the_one_before(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(TID);
    record(thread, SAMPLE_CPU, 7);
    thread_table_give_back(&threads, thread);
    assert_int_equal(leaf_of(thread), 0);
    assert_ptr_equal(begin_thread(TID + 1), thread);
    assert_int_equal(leaf_of(thread), 0);
    harvest();
    assert_int_equal(leaf_of(thread), 0);
    assert_int_equal(stacks.table.first_chunk, CHUNK_NONE);
}

static void many_threads_have_each_its_own(void **state) {
    (void)state;
    struct thread_state *all[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        all[i] = begin_thread(TID + i);
        record(all[i], SAMPLE_CPU, 1000 + i);
    }
    for (int round = 0; round < 3; round++)
        harvest();
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(leaf_of(all[i]), 1000 + i);
}

static int end(void **state) {
    (void)state;
    thread_table_reset(&threads);
    last_stacks_after_fork(&stacks);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_last_cpu_sample_counts, end),
        cmocka_unit_test_teardown(a_thread_that_runs_no_more_keeps_its_last_stack, end),
        cmocka_unit_test_teardown(a_new_thread_has_not_the_stack_of_the_one_before, end),
        cmocka_unit_test_teardown(many_threads_have_each_its_own, end),
    };
    if (!recorder_is_ready(DEPTH))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
