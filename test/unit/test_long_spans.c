/* Tests how long spans last, over threads and intervals; and which samples of an interval remain:
 * those of spans that last longer than a bound. */
#include "unit.h"

#include "control/long_spans.h"
#include "decoded_export.h"

static const uint64_t second = NANO_PER_SECOND;

static struct sample_context span(uint64_t number) {
    struct sample_context context = {.trace_id = "trace id, 16 by", .attribute_bytes = 0};
    memcpy(context.span_id, &number, sizeof number);
    return context;
}

/* --- the table --- */

static void see(struct span_table *table, uint64_t number, uint64_t first, uint64_t last) {
    const struct sample_context context = span(number);
    span_table_record(table, &context, (struct span_seen){first, last});
}

static uint64_t length(const struct span_table *table, uint64_t number) {
    const struct sample_context context = span(number);
    return span_table_length(table, &context);
}

static void a_span_lasts_from_its_first_sample_to_its_last(void **state) {
    (void)state;
    struct span_table table = {0};
    assert_int_equal(length(&table, 1), 0);
    see(&table, 1, 500, 500);
    assert_int_equal(length(&table, 1), 0);
    see(&table, 1, 700, 900);
    see(&table, 2, 100, 10000);
    assert_int_equal(length(&table, 1), 400);
    see(&table, 1, 300, 600);
    assert_int_equal(length(&table, 1), 600);
    assert_int_equal(length(&table, 2), 9900);
    assert_int_equal(length(&table, 3), 0);
    span_table_close(&table);
    assert_int_equal(length(&table, 1), 0);
}

/* Records spans of two traces that have one span id. */
static void a_span_is_known_by_both_of_its_ids(void **state) {
    (void)state;
    struct span_table table = {0};
    struct sample_context other = span(1);
    other.trace_id[0] ^= 1;
    see(&table, 1, 100, 300);
    span_table_record(&table, &other, (struct span_seen){900, 901});
    assert_int_equal(length(&table, 1), 200);
    assert_int_equal(span_table_length(&table, &other), 1);
    span_table_close(&table);
}

static void samples_without_a_time_are_ignored(void **state) {
    (void)state;
    struct span_table table = {0};
    see(&table, 1, 0, 0);
    assert_int_equal(table.count, 0);
    see(&table, 1, 5, 9);
    see(&table, 1, 0, 0);
    assert_int_equal(length(&table, 1), 4);
    span_table_close(&table);
}

static void many_are_distinguished(void **state) {
    (void)state;
    struct span_table table = {0};
    for (uint64_t i = 1; i <= 20000; i++)
        see(&table, i, 1000, 1000 + i);
    assert_int_equal(table.count, 20000);
    for (uint64_t i = 1; i <= 20000; i++)
        assert_int_equal(length(&table, i), i);
    assert_int_equal(table.lost, 0);
    span_table_close(&table);
}

static void spans_last_seen_before_a_moment_are_forgotten(void **state) {
    (void)state;
    struct span_table table = {0};
    for (uint64_t i = 1; i <= 1000; i++)
        see(&table, i, 1, 1000 + i);
    assert_int_equal(span_table_forget(&table, 1901), 900);
    assert_int_equal(table.count, 100);
    assert_true(table.places < 1000); /* the table gives its memory back */
    for (uint64_t i = 1; i <= 1000; i++)
        assert_int_equal(length(&table, i), i <= 900 ? 0 : 999 + i);
    assert_int_equal(span_table_forget(&table, 1901), 0);
    assert_int_equal(table.lost, 0);
    span_table_close(&table);
}

/* Sees more spans in the interval than are followed: a span over the bound is lost, and counted. */
static void a_full_table_refuses_and_counts(void **state) {
    (void)state;
    struct span_table table = {0};
    span_table_begin(&table, 50);
    for (uint64_t i = 1; i <= SPANS_MOST + 7; i++)
        see(&table, i, 100, 200);
    assert_int_equal(table.count, SPANS_MOST);
    assert_int_equal(table.lost, 7);
    see(&table, 1, 100, 300); /* the other spans go on */
    assert_int_equal(length(&table, 1), 200);
    assert_int_equal(length(&table, SPANS_MOST + 7), 0);
    span_table_close(&table);
}

static void a_full_table_forgets_spans_of_earlier_intervals_first(void **state) {
    (void)state;
    struct span_table table = {0};
    span_table_begin(&table, 0);
    for (uint64_t i = 1; i <= SPANS_MOST; i++)
        see(&table, i, 100, 200);
    span_table_begin(&table, 1000);
    see(&table, 5, 1500, 1500);
    see(&table, SPANS_MOST + 1, 1500, 1600);
    assert_int_equal(table.count, 2);
    assert_int_equal(table.lost, SPANS_MOST - 1);
    assert_int_equal(length(&table, 5), 1400);
    assert_int_equal(length(&table, SPANS_MOST + 1), 100);
    span_table_close(&table);
}

/* --- intervals --- */

static struct harvest_sample sample_of(const struct sample_context *context, uint32_t tid,
                                       uint64_t first, uint64_t last) {
    struct harvest_sample sample = cpu(frames_a, second);
    sample.tid = tid;
    sample.context = context;
    sample.seen = (struct span_seen){first, last};
    return sample;
}

static struct merge merged(const struct capture_api *api, const struct harvest_sample *samples,
                           size_t count) {
    struct merge merge = {.items = {0}};
    fake.samples = samples;
    fake.sample_count = count;
    assert_true(merge_harvest(&merge, api));
    return merge;
}

/* Exports the interval [begun, begun + 10 s) with these samples; returns how many of them
 * remain. */
static size_t left_of(struct long_spans *spans, uint64_t bound, uint64_t begun,
                      const struct harvest_sample *samples, size_t count) {
    const struct capture_api api = fake_capture(quiet);
    struct merge merge = merged(&api, samples, count);
    long_spans_update(spans, &merge, bound, (struct span_interval){begun, begun + 10 * second},
                      &api);
    merge_keep(&merge, long_spans_has, spans);
    const size_t left = merge.items.count;
    merge_free(&merge);
    return left;
}

static void samples_of_long_spans_alone_are_left(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    const struct sample_context longer = span(1);
    const struct sample_context equal = span(2);
    struct sample_context labels = {.attribute_bytes = 0};
    struct long_spans spans = {.bound_nano = 0};
    const struct harvest_sample samples[] = {
        sample_of(&equal, 1, second, 2 * second), sample_of(&longer, 2, second, 2 * second + 1),
        sample_of(NULL, 3, second, 9 * second), sample_of(&labels, 4, second, 9 * second)};
    struct merge merge = merged(&api, samples, 4);
    const struct span_interval interval = {0, 10 * second};
    long_spans_update(&spans, &merge, second, interval, &api);
    merge_keep(&merge, long_spans_has, &spans);
    assert_int_equal(merge.items.count, 1);
    assert_int_equal(((const struct harvest_sample *)merge.items.items[0])->tid, 2);
    merge_free(&merge);
    long_spans_close(&spans);
}

/* Makes a span that lasts long on two threads together, and on neither alone. A sample without a
 * time belongs to the span as well. */
static void a_span_may_pass_from_thread_to_thread(void **state) {
    (void)state;
    const struct sample_context context = span(1);
    struct long_spans spans = {.bound_nano = 0};
    const struct harvest_sample samples[] = {sample_of(&context, 1, second, second),
                                             sample_of(&context, 2, 3 * second, 3 * second),
                                             sample_of(&context, 3, 0, 0)};
    assert_int_equal(left_of(&spans, second, 0, samples, 3), 3);
    long_spans_close(&spans);
}

static void a_span_goes_on_in_the_next_interval(void **state) {
    (void)state;
    const struct sample_context context = span(1);
    struct long_spans spans = {.bound_nano = 0};
    const struct harvest_sample first = sample_of(&context, 1, 9 * second, 9 * second);
    const struct harvest_sample later = sample_of(&context, 1, 11 * second, 11 * second);
    assert_int_equal(left_of(&spans, second, 0, &first, 1), 0);
    assert_int_equal(left_of(&spans, second, 10 * second, &later, 1), 1);
    assert_int_equal(left_of(&spans, 3 * second, 10 * second, &later, 1), 0);
    long_spans_close(&spans);
}

/* Leaves the span without a sample for a minute, and then for longer. */
static void a_span_that_is_silent_for_a_minute_is_forgotten(void **state) {
    (void)state;
    const struct sample_context context = span(1);
    struct long_spans spans = {.bound_nano = 0};
    const struct harvest_sample at_9 = sample_of(&context, 1, 9 * second, 9 * second);
    const struct harvest_sample at_61 = sample_of(&context, 1, 61 * second, 61 * second);
    const struct harvest_sample at_135 = sample_of(&context, 1, 135 * second, 135 * second);
    assert_int_equal(left_of(&spans, second, 0, &at_9, 1), 0);
    for (uint64_t i = 1; i < 6; i++)
        (void)left_of(&spans, second, i * 10 * second, NULL, 0);
    assert_int_equal(left_of(&spans, second, 60 * second, &at_61, 1), 1);
    for (uint64_t i = 7; i < 13; i++)
        (void)left_of(&spans, second, i * 10 * second, NULL, 0);
    assert_int_equal(spans.table.count, 0);
    assert_int_equal(left_of(&spans, second, 130 * second, &at_135, 1), 0);
    long_spans_close(&spans);
}

/* Remembers a span for as long as the bound: a bound of five minutes would never be reached
 * otherwise. */
static void it_is_remembered_for_as_long_as_the_bound(void **state) {
    (void)state;
    const struct sample_context context = span(1);
    struct long_spans spans = {.bound_nano = 0};
    const struct harvest_sample first = sample_of(&context, 1, 9 * second, 9 * second);
    const struct harvest_sample later = sample_of(&context, 1, 310 * second, 310 * second);
    assert_int_equal(left_of(&spans, 300 * second, 0, &first, 1), 0);
    for (uint64_t i = 1; i < 30; i++)
        (void)left_of(&spans, 300 * second, i * 10 * second, NULL, 0);
    assert_int_equal(left_of(&spans, 300 * second, 301 * second, &later, 1), 1);
    long_spans_close(&spans);
}

static void without_a_bound_nothing_is_remembered(void **state) {
    (void)state;
    const struct sample_context context = span(1);
    struct long_spans spans = {.bound_nano = 0};
    const struct harvest_sample sample = sample_of(&context, 1, second, 9 * second);
    assert_int_equal(left_of(&spans, second, 0, &sample, 1), 1);
    assert_int_equal(left_of(&spans, 0, 10 * second, &sample, 1), 0);
    assert_null(spans.table.entries);
}

static void spans_without_room_are_counted(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    static struct sample_context contexts[SPANS_MOST + 2];
    static struct harvest_sample samples[SPANS_MOST + 2];
    struct long_spans spans = {.bound_nano = 0};
    for (uint64_t i = 0; i < SPANS_MOST + 2; i++) {
        contexts[i] = span(i + 1);
        samples[i] = sample_of(&contexts[i], 1, second, 3 * second);
    }
    struct merge merge = merged(&api, samples, SPANS_MOST + 2);
    const struct span_interval interval = {0, 10 * second};
    long_spans_update(&spans, &merge, second, interval, &api);
    assert_int_equal(fake.dropped[DROP_SPANS_FULL], 2);
    merge_keep(&merge, long_spans_has, &spans);
    assert_int_equal(merge.items.count, SPANS_MOST);
    merge_free(&merge);
    long_spans_close(&spans);
}

/* --- in an export --- */

/* Names the contexts twice: for clients before samples are removed, and again, so that the
 * remaining samples have their own links. */
static void remaining_samples_keep_their_links(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    const struct sample_context of_short = span(1);
    const struct sample_context of_long = span(2);
    struct long_spans spans = {.bound_nano = 0};
    const struct harvest_sample samples[] = {sample_of(&of_short, 1, second, second),
                                             sample_of(&of_long, 1, second, 3 * second)};
    struct merge merge = merged(&api, samples, 2);
    const struct span_interval interval = {0, 10 * second};
    long_spans_update(&spans, &merge, second, interval, &api);
    profile_export_begin(&exporter, &merge, true);
    merge_keep(&merge, long_spans_has, &spans);
    profile_export_begin(&exporter, &merge, false);
    const struct encoded_export export =
        profile_export(&exporter, &merge, export_part_whole(&merge), 1000, 3000);
    otlp_writer_close(export.writer);
    Request *const request = decode(&export);
    assert_int_equal(request->dictionary->n_link_table, 2); /* the first link is the empty one */
    assert_memory_equal(request->dictionary->link_table[1]->span_id.data, of_long.span_id, 8);
    release(request);
    free(export.protobuf.bytes);
    merge_free(&merge);
    long_spans_close(&spans);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_lasts_from_its_first_sample_to_its_last),
        cmocka_unit_test(a_span_is_known_by_both_of_its_ids),
        cmocka_unit_test(samples_without_a_time_are_ignored),
        cmocka_unit_test(many_are_distinguished),
        cmocka_unit_test(spans_last_seen_before_a_moment_are_forgotten),
        cmocka_unit_test(a_full_table_refuses_and_counts),
        cmocka_unit_test(a_full_table_forgets_spans_of_earlier_intervals_first),
        cmocka_unit_test(samples_of_long_spans_alone_are_left),
        cmocka_unit_test(a_span_may_pass_from_thread_to_thread),
        cmocka_unit_test(a_span_goes_on_in_the_next_interval),
        cmocka_unit_test(a_span_that_is_silent_for_a_minute_is_forgotten),
        cmocka_unit_test(it_is_remembered_for_as_long_as_the_bound),
        cmocka_unit_test(without_a_bound_nothing_is_remembered),
        cmocka_unit_test(spans_without_room_are_counted),
        cmocka_unit_test(remaining_samples_keep_their_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
