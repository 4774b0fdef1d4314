/* Tests recording: every nanosecond is in one record or waits for the next; losses are counted. */
#include "unit.h"

#include "arch_machine.h"
#include "clock.h"
#include "context/program_context.h"
#include "kernel/stepped_memory.h"
#include "recorder_fixture.h"

#include <sys/prctl.h>

enum { DEPTH = 32, TID = 4711 };

static struct thread_state *thread;

/* --- what was recorded --- */

static struct {
    int samples;
    int names;
    uint64_t cpu_nano;
    struct sample last;
    struct span_seen when;
    uint64_t frames[DEPTH];
    char name[THREAD_NAME_BYTES];
} seen;

static void see(void *arg, const struct sample *sample) {
    (void)arg;
    if (sample->kind == RECORD_THREAD_NAME) {
        seen.names++;
        memcpy(seen.name, sample->frames, sizeof seen.name);
        return;
    }
    seen.samples++;
    seen.cpu_nano += (uint64_t)sample->values[MEASURED_NANO];
    seen.last = *sample;
    seen.when = sample->seen ? *sample->seen : (struct span_seen){0, 0};
    memcpy(seen.frames, sample->frames, sample->frame_count * sizeof *seen.frames);
}

static void harvest(void) {
    memset(&seen, 0, sizeof seen);
    thread_table_harvest(&threads, see, NULL);
}

static void *start_routine(void *argument) {
    return argument;
}

static int begin(void **state) {
    (void)state;
    thread = begin_thread(TID);
    if (!thread)
        return -1;
    thread->start_routine = start_routine;
    harvest();
    return 0;
}

static int end(void **state) {
    (void)state;
    thread_table_reset(&threads);
    return 0;
}

static uint64_t dropped(enum drop_reason reason) {
    return atomic_load(&thread->dropped[reason]);
}

__attribute__((noinline)) static bool record_here(struct sample *sample) {
    uint64_t registers[REGISTER_COUNT];
    enum unwind_end how;
    REGISTERS_HERE(registers);
    return record_stack(&recorder, thread, registers, (struct stack_range){0, 1}, sample, &how);
}

/* --- samples --- */

/* Takes a sample under the span; NULL: under no span. `span_times`: the settings request the times
 * of spans. `begun`: when the sample's wait began; 0: the sample is of no wait. Returns the times
 * that are recorded with the sample. */
static struct span_seen seen_under(const uint8_t *span_id, bool span_times, uint64_t begun) {
    static const uint8_t trace_id[TRACE_ID_BYTES] = {1};
    struct settings_values values = set_most(DEPTH);
    values.span_times = span_times;
    settings_publish(&settings, &values);
    contexts.sources = ~0u;
    thread->program_context = program_context_make(0);
    assert_non_null(thread->program_context);
    program_context_set_span(thread->program_context, span_id ? trace_id : NULL, span_id);
    const struct span_seen of_wait = {.first_nano = begun};
    struct sample sample = {.kind = SAMPLE_CPU, .seen = begun ? &of_wait : NULL};
    assert_true(record_here(&sample));
    program_context_set_span(thread->program_context, NULL, NULL);
    contexts.sources = 0;
    (void)set_most(DEPTH);
    harvest();
    assert_int_equal(seen.samples, 1);
    return seen.when;
}

static void times_of_spans_are_recorded_on_request(void **state) {
    (void)state;
    static const uint8_t span_id[SPAN_ID_BYTES] = {2};
    const uint64_t before = monotonic_nano();
    const struct span_seen asked = seen_under(span_id, true, 0);
    assert_in_range(asked.first_nano, before, monotonic_nano());
    assert_int_equal(asked.first_nano, asked.last_nano);
    assert_int_equal(seen_under(span_id, false, 0).last_nano, 0);
    assert_int_equal(seen_under(NULL, true, 0).last_nano, 0);
}

static void a_wait_counts_from_its_beginning(void **state) {
    (void)state;
    static const uint8_t span_id[SPAN_ID_BYTES] = {3};
    const uint64_t before = monotonic_nano();
    const struct span_seen asked = seen_under(span_id, true, before - 5000);
    assert_int_equal(asked.first_nano, before - 5000);
    assert_in_range(asked.last_nano, before, monotonic_nano());
    assert_int_equal(seen_under(span_id, false, before - 5000).last_nano, 0);
}

static void a_stack_is_recorded_to_its_end(void **state) {
    (void)state;
    struct sample sample = {.kind = SAMPLE_CPU, .values = {[MEASURED_NANO] = 5}};
    assert_true(record_here(&sample));
    assert_true(thread->sampled);
    harvest();
    assert_int_equal(seen.samples, 1);
    assert_int_equal(seen.last.tid, TID);
    assert_int_equal(seen.last.flags, 0);
    assert_int_equal(seen.cpu_nano, 5);
    assert_true(seen.last.frame_count >= 3);
    assert_int_equal(dropped(DROP_TRUNCATED), 0);
}

static void profiler_time_has_no_frames(void **state) {
    (void)state;
    struct sample sample = {.kind = SAMPLE_CPU, .values = {[MEASURED_NANO] = 7}};
    assert_true(record_profiler_time(&recorder, thread, &sample));
    harvest();
    assert_int_equal(seen.samples, 1);
    assert_int_equal(seen.last.flags, SAMPLE_FLAG_OWN_TIME);
    assert_int_equal(seen.last.frame_count, 0);
    assert_int_equal(seen.cpu_nano, 7);
}

/* Takes all chunks of the pool, for no thread: no memory is left for another table. */
static void exhaust_memory(void) {
    while (chunk_pool_take(&threads.pool, CHUNK_LIMIT) != CHUNK_NONE)
        continue;
}

static void samples_without_room_are_counted(void **state) {
    (void)state;
    exhaust_memory();
    struct sample sample = {.kind = SAMPLE_CPU, .values = {[MEASURED_NANO] = 5}};
    const uint64_t before = dropped(DROP_TABLE_FULL);
    assert_false(record_here(&sample));
    assert_false(thread->sampled);
    assert_int_equal(dropped(DROP_TABLE_FULL), before + 1);
    record_drop(&recorder, DROP_BUSY);
    assert_int_equal(atomic_load(&recorder.dropped[DROP_BUSY]), 1);
}

/* Records under ever new thread ids, each of which needs a record of its own, until memory is
 * refused. */
static void samples_that_memory_is_refused_for_are_counted_apart(void **state) {
    (void)state;
    const uint64_t before = dropped(DROP_NO_MEMORY);
    const uint64_t full = dropped(DROP_TABLE_FULL);
    uint32_t tid = TID;
    bool recorded = true;
    stepped_memory_allow(0);
    while (recorded) {
        struct sample sample = {.kind = SAMPLE_CPU, .values = {[MEASURED_NANO] = 5}};
        atomic_store(&thread->tid, ++tid);
        recorded = record_here(&sample);
    }
    stepped_memory_allow(UINT64_MAX);
    atomic_store(&thread->tid, TID);
    assert_int_equal(dropped(DROP_NO_MEMORY), before + 1);
    assert_int_equal(dropped(DROP_TABLE_FULL), full);
}

/* --- a thread's end --- */

static void the_remainder_is_recorded_under_the_start_routine(void **state) {
    (void)state;
    const uint64_t sampled = thread->last_cpu_nano = 1;
    record_remainder(&recorder, thread);
    assert_true(thread->last_cpu_nano > sampled);
    harvest();
    assert_int_equal(seen.samples, 1);
    assert_int_equal(seen.cpu_nano, thread->last_cpu_nano - sampled);
    assert_int_equal(seen.last.flags, SAMPLE_FLAG_UNSAMPLED);
    assert_int_equal(seen.frames[0], (uintptr_t)start_routine);
    /* a thread without a sample: one record for all such threads */
    assert_int_equal(seen.last.tid, 0);
}

static void a_sampled_thread_keeps_its_remainder(void **state) {
    (void)state;
    thread->sampled = true;
    record_remainder(&recorder, thread);
    harvest();
    assert_int_equal(seen.last.tid, TID);
}

static void no_time_is_recorded_twice(void **state) {
    (void)state;
    record_remainder(&recorder, thread);
    const uint64_t first = thread->last_cpu_nano;
    record_remainder(&recorder, thread);
    harvest();
    assert_int_equal(seen.cpu_nano, thread->last_cpu_nano);
    assert_true(thread->last_cpu_nano >= first);
    thread->last_cpu_nano = UINT64_MAX;
    record_remainder(&recorder, thread);
    harvest();
    assert_int_equal(seen.samples, 0);
}

/* Keeps the remainder due until a sample finds room. */
static void a_remainder_that_finds_no_room_stays_due(void **state) {
    (void)state;
    exhaust_memory();
    const uint64_t before = dropped(DROP_TABLE_FULL);
    record_remainder(&recorder, thread);
    assert_int_equal(thread->last_cpu_nano, 0);
    assert_int_equal(dropped(DROP_TABLE_FULL), before + 1);
}

static void a_name_comes_with_its_thread(void **state) {
    (void)state;
    prctl(PR_SET_NAME, "worker");
    record_name(&recorder, thread);
    harvest();
    assert_int_equal(seen.names, 1);
    assert_int_equal(seen.samples, 0);
    assert_string_equal(seen.name, "worker");
}

static int start(void **state) {
    (void)state;
    return recorder_is_ready(DEPTH) ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stack_is_recorded_to_its_end, begin, end),
        cmocka_unit_test_setup_teardown(times_of_spans_are_recorded_on_request, begin, end),
        cmocka_unit_test_setup_teardown(a_wait_counts_from_its_beginning, begin, end),
        cmocka_unit_test_setup_teardown(profiler_time_has_no_frames, begin, end),
        cmocka_unit_test_setup_teardown(samples_without_room_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(samples_that_memory_is_refused_for_are_counted_apart, begin,
                                        end),
        cmocka_unit_test_setup_teardown(the_remainder_is_recorded_under_the_start_routine, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_sampled_thread_keeps_its_remainder, begin, end),
        cmocka_unit_test_setup_teardown(no_time_is_recorded_twice, begin, end),
        cmocka_unit_test_setup_teardown(a_remainder_that_finds_no_room_stays_due, begin, end),
        cmocka_unit_test_setup_teardown(a_name_comes_with_its_thread, begin, end),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
