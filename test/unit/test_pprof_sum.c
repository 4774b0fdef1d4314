/* Tests sums over exports for pprof, and the windows that take them. */
#include "unit.h"

#include "encode/compress.h"
#include "serve/window.h"
#include "summed_exports.h"

static void times_add_up_and_the_last_moment_holds(void **state) {
    const struct harvest_sample first[] = {allocated(frames_a, 2, 100), live(frames_a, 2, 100)};
    const struct harvest_sample second[] = {allocated(frames_b, 1, 7), live(frames_a, 1, 50)};
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_HEAP);
    add(sum, first, 2);
    assert_int_equal(total(sum, 1), 100);
    assert_int_equal(total(sum, 3), 100);
    add(sum, second, 2);
    assert_int_equal(total(sum, 0), 3);
    assert_int_equal(total(sum, 1), 107);
    assert_int_equal(total(sum, 2), 1);
    assert_int_equal(total(sum, 3), 50);
    assert_int_equal(pprof_sum_count(sum), 2); /* equal stacks of two exports are one sample */
    end(sum);
}

static void each_export_counts_by_its_own_period(void **state) {
    const struct harvest_sample samples[] = {cpu(frames_a, 30000000)};
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add(sum, samples, 1);
    add(sum, samples, 1);
    assert_int_equal(total(sum, 0), 6);
    assert_int_equal(total(sum, 1), 60000000);
    end(sum);
}

static void threads_are_distinguished_by_ids_and_cpu_time_by_names_alone(void **state) {
    struct harvest_sample samples[] = {cpu(frames_a, 10000000), cpu(frames_a, 10000000)};
    struct pprof_sample sample;
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    samples[1].tid = 8;
    add(sum, samples, 2);
    assert_int_equal(pprof_sum_count(sum), 1);
    pprof_sum_sample(sum, 0, &sample);
    assert_int_equal(sample.values[0], 2);
    assert_int_equal(sample.label_count, 1);
    assert_string_equal(sample.labels[0].key, "thread.name");
    assert_string_equal(sample.labels[0].text, "worker");
    end(sum);
}

static void the_result_is_compressed_and_has_its_drops(void **state) {
    const struct harvest_sample samples[] = {cpu(frames_a, 30000000)};
    static uint8_t unpacked[1 << 16];
    const struct pprof_times times = {.unix_nano = 5, .duration_nano = 6};
    size_t size = 0;
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add(sum, samples, 1);
    pprof_sum_mark_incomplete(sum);
    uint8_t *const bytes = pprof_sum_encode(sum, PPROF_PROFILE, &times, &size);
    assert_non_null(bytes);
    const size_t unpacked_size = decompress(bytes, size, unpacked, sizeof unpacked);
    assert_true(unpacked_size > 0);
    assert_non_null(memmem(unpacked, unpacked_size, "incomplete", 10));
    assert_non_null(memmem(unpacked, unpacked_size, "nanoseconds", 11));
    free(bytes);
    end(sum);
}

enum { MANY = 150000 }; /* more stacks than there is room for */

/* Adds an export of stacks of one frame each, in a file with a build id, from number `first` on,
 * with a sample of 1 for each. The first frame has a name, or has none yet. */
static void add_some(struct pprof_sum *sum, uint64_t first, size_t count, const char *name) {
    static const struct otlp_profile_type type = {"samples", "count", "cpu", "nanoseconds", 10};
    static const uint8_t id[16];
    struct otlp_writer *const writer = otlp_writer_open();
    assert_non_null(writer);
    struct otlp_profile *const profile = otlp_profile(writer, &type, id, 1, 2, count);
    const int32_t build_id = otlp_attribute_string(writer, "process.executable.build_id.gnu", "1d");
    const struct otlp_mapping file = {
        .filename = "file", .attributes = &build_id, .attribute_count = 1};
    const int32_t mapping = otlp_mapping(writer, &file);
    for (uint64_t i = first; i < first + count; i++) {
        struct otlp_line line = {0, 0};
        if (i == first && name)
            line.function = otlp_function(writer, name, "", "", 0);
        const int32_t location =
            otlp_location(writer, mapping, i + 1, &line, line.function != 0, build_id);
        const struct otlp_identity identity = {.stack = otlp_stack(writer, &location, 1)};
        otlp_sample(writer, profile, &identity, 1);
    }
    pprof_sum_add(sum, writer);
    otlp_writer_close(writer);
}

static int64_t count_of(const struct pprof_sum *sum, const char *function, uint64_t address) {
    struct pprof_sample sample;
    struct pprof_frame frame;
    for (size_t i = 0; i < pprof_sum_count(sum); i++) {
        pprof_sum_sample(sum, i, &sample);
        if (pprof_stack_frames(pprof_sum_tables(sum), sample.stack, &frame, 1) == 1 &&
            strcmp(frame.function, function) == 0 && frame.address == address)
            return sample.values[0];
    }
    return 0;
}

static void a_full_sum_counts_on_for_known_stacks_and_stays_whole(void **state) {
    (void)state;
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add_some(sum, 0, MANY, NULL);
    const int64_t other = count_of(sum, "[other]", 0);
    assert_true(other > 0 && other < MANY);
    assert_int_equal(total(sum, 0), MANY);
    add_some(sum, 0, 5, NULL);
    add_some(sum, MANY - 5, 5, NULL);
    assert_int_equal(count_of(sum, "", 1), 2);
    assert_int_equal(count_of(sum, "[other]", 0), other + 5);
    assert_int_equal(total(sum, 0), MANY + 10);
    assert_true(pprof_sum_bytes(sum) < 32 << 20);
    pprof_sum_close(sum);
}

static void code_of_a_file_is_the_same_when_it_gets_a_name(void **state) {
    (void)state;
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add_some(sum, 0, 2, NULL);
    add_some(sum, 0, 2, "better");
    assert_int_equal(pprof_sum_count(sum), 2);
    assert_int_equal(count_of(sum, "better", 1), 2);
    assert_int_equal(count_of(sum, "", 2), 2);
    add_some(sum, 0, 1, NULL); /* the sum does not lose the name */
    assert_int_equal(count_of(sum, "better", 1), 3);
    pprof_sum_close(sum);
}

static void a_full_sum_knows_code_that_gets_a_name(void **state) {
    (void)state;
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add_some(sum, 0, MANY, NULL);
    add_some(sum, 0, 1, "better");
    assert_int_equal(count_of(sum, "", 1), 2);
    assert_int_equal(total(sum, 0), MANY + 1);
    pprof_sum_close(sum);
}

/* --- windows --- */

static struct http_request request;
static const uint64_t sampled[SAMPLE_KINDS] = {[SAMPLE_CPU] = 30};

static void a_window_begins_and_ends_with_exports(void **state) {
    (void)state;
    struct window *const window = window_open(&request, WINDOW_PPROF, 100);
    assert_int_equal(window->state, WINDOW_BEGINS);
    assert_int_equal(window_wants(window), 0); /* the window wants an export at once */
    window_end_export(window, 1000, 5000, sampled);
    assert_int_equal(window->state, WINDOW_TAKES);
    assert_int_equal(window_wants(window), 1100);
    window_end_export(window, 1050, 5050, sampled); /* the end of another export */
    assert_int_equal(window->state, WINDOW_TAKES);
    window_end_export(window, 1101, 5101, sampled);
    assert_int_equal(window->state, WINDOW_DONE);
    assert_int_equal(window->begin_unix, 5000);
    assert_int_equal(window->end_unix, 5101);
    assert_int_equal(window_duration(window), 60); /* sampling was off for the rest */
    assert_true(window_wants(window) == UINT64_MAX);
    window_close(window);
}

static void a_window_without_length_ends_with_the_next_export(void **state) {
    (void)state;
    struct window *const window = window_open(&request, WINDOW_FLUSH, 0);
    assert_int_equal(window_wants(window), 0);
    window_end_export(window, 1000, 5000, sampled);
    assert_int_equal(window->state, WINDOW_DONE);
    window_close(window);
}

/* A profile without a duration would be one of cumulative sums. */
static void a_window_in_which_nothing_was_sampled_has_a_duration(void **state) {
    static const uint64_t nothing[SAMPLE_KINDS];
    (void)state;
    struct window *const window = window_open(&request, WINDOW_PPROF, 100);
    window_end_export(window, 1000, 5000, sampled);
    window_end_export(window, 1101, 5101, nothing);
    assert_int_equal(window_duration(window), 1);
    window_close(window);
}

static void exports_before_a_window_are_not_in_it(void **state) {
    static const uint8_t message[] = {1, 2, 3};
    (void)state;
    struct window *const window = window_open(&request, WINDOW_OTLP, 100);
    window_take_bytes(window, message, sizeof message);
    assert_int_equal(window->exports.size, 0);
    window_end_export(window, 1000, 5000, sampled);
    window_take_bytes(window, message, sizeof message);
    assert_int_equal(window->exports.size, 7);
    assert_memory_equal(window->exports.bytes, "\0\0\0\3\1\2\3", 7);
    window_close(window);
}

static void exports_of_a_window_have_a_bound(void **state) {
    static uint8_t message[16 << 20];
    (void)state;
    struct window *const window = window_open(&request, WINDOW_OTLP, 0);
    for (int i = 0; i < 5; i++)
        window_take_bytes(window, message, sizeof message);
    assert_true(window->exports.failed);
    assert_true(window->exports.size <= WINDOW_MOST_BYTES);
    window_close(window);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_add_up_and_the_last_moment_holds),
        cmocka_unit_test(each_export_counts_by_its_own_period),
        cmocka_unit_test(threads_are_distinguished_by_ids_and_cpu_time_by_names_alone),
        cmocka_unit_test(the_result_is_compressed_and_has_its_drops),
        cmocka_unit_test(a_full_sum_counts_on_for_known_stacks_and_stays_whole),
        cmocka_unit_test(code_of_a_file_is_the_same_when_it_gets_a_name),
        cmocka_unit_test(a_full_sum_knows_code_that_gets_a_name),
        cmocka_unit_test(a_window_begins_and_ends_with_exports),
        cmocka_unit_test(a_window_without_length_ends_with_the_next_export),
        cmocka_unit_test(a_window_in_which_nothing_was_sampled_has_a_duration),
        cmocka_unit_test(exports_before_a_window_are_not_in_it),
        cmocka_unit_test(exports_of_a_window_have_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
