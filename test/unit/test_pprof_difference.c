/* Tests differences for pprof: the sum over a time, minus the state at its beginning. */
#include "unit.h"

#include "encode/compress.h"
#include "serve/window.h"
#include "summed_exports.h"

static int64_t value_of(const struct pprof_sum *sum, const uint64_t *frames, size_t value) {
    struct pprof_sample sample;
    struct pprof_frame frame;
    int64_t all = 0;
    for (size_t i = 0; i < pprof_sum_count(sum); i++) {
        pprof_sum_sample(sum, i, &sample);
        if (pprof_stack_frames(pprof_sum_tables(sum), sample.stack, &frame, 1) > 0 &&
            frame.address == frames[0])
            all += sample.values[value];
    }
    return all;
}

/* Subtracts the objects that were live at the beginning from those that are live at the end; leaves
 * out allocations before the beginning. */
static void a_difference_of_the_heap_is_between_two_moments(void **state) {
    const struct harvest_sample before[] = {allocated(frames_a, 9, 900), live(frames_a, 3, 300)};
    const struct harvest_sample amid[] = {allocated(frames_b, 1, 7), live(frames_a, 3, 300),
                                          live(frames_b, 1, 7)};
    const struct harvest_sample after[] = {allocated(frames_b, 2, 14), live(frames_a, 1, 100),
                                           live(frames_b, 3, 21)};
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open_difference(PPROF_HEAP);
    add(sum, before, 2);
    pprof_sum_begin(sum);
    add(sum, amid, 3);
    assert_int_equal(total(sum, 3), 7);
    add(sum, after, 3);
    assert_int_equal(total(sum, 0), 3);
    assert_int_equal(total(sum, 1), 21);
    assert_int_equal(value_of(sum, frames_a, 2), -2);
    assert_int_equal(value_of(sum, frames_a, 3), -200);
    assert_int_equal(value_of(sum, frames_b, 3), 21);
    end(sum);
}

/* An empty export is not sent: objects that were live at the begin, and are in no later export, are
 * gone. */
static void objects_that_no_later_export_mentions_were_freed(void **state) {
    const struct harvest_sample before[] = {live(frames_a, 3, 300)};
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open_difference(PPROF_ALLOCS);
    add(sum, before, 1);
    pprof_sum_begin(sum);
    assert_int_equal(total(sum, 3), -300);
    end(sum);
}

/* Subtracts nothing for a kind that only sums up over a time. */
static void a_difference_without_moments_begins_with_its_time(void **state) {
    const struct harvest_sample samples[] = {cpu(frames_a, 10000000)};
    const struct pprof_times times = {.unix_nano = 5, .duration_nano = 6};
    static uint8_t unpacked[1 << 16];
    size_t size = 0;
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open_difference(PPROF_PROFILE);
    pprof_sum_mark_incomplete(sum);
    add(sum, samples, 1);
    assert_int_equal(pprof_sum_count(sum), 0);
    pprof_sum_begin(sum);
    add(sum, samples, 1);
    assert_int_equal(total(sum, 0), 1);
    uint8_t *const bytes = pprof_sum_encode(sum, PPROF_PROFILE, &times, &size);
    assert_non_null(bytes);
    size = decompress(bytes, size, unpacked, sizeof unpacked);
    assert_true(size > 0);
    assert_null(memmem(unpacked, size, "incomplete", 10)); /* what the sum missed came before */
    free(bytes);
    end(sum);
}

/* A thread's id and the length of its wait would make two samples of one thread in two moments. */
static void a_difference_counts_threads_by_their_stacks(void **state) {
    struct harvest_sample samples[] = {
        {.kind = SAMPLE_THREAD,
         .thread_name = "a",
         .frames = frames_a,
         .frame_count = 2,
         .tid = 7,
         .values = {1}},
        {.kind = SAMPLE_THREAD,
         .thread_name = "a",
         .frames = frames_b,
         .frame_count = 2,
         .tid = 8,
         .values = {1}},
    };
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open_difference(PPROF_GOROUTINE);
    add(sum, samples, 2);
    pprof_sum_begin(sum);
    samples[0].tid = 9; /* one thread has ended, and another is in its place */
    samples[1].frames = frames_a;
    add(sum, samples, 2);
    assert_int_equal(value_of(sum, frames_a, 0), 1);
    assert_int_equal(value_of(sum, frames_b, 0), -1);
    assert_int_equal(pprof_sum_count(sum), 2);
    end(sum);
}

/* Lacks the first moment, or the second, because an export was incomplete: then nothing is written.
 * With the end alone all objects would seem to have been freed. */
static void a_difference_that_lacks_a_moment_is_not_written(void **state) {
    const struct harvest_sample samples[] = {live(frames_a, 3, 300)};
    const struct pprof_times times = {.unix_nano = 5, .duration_nano = 6};
    size_t size = 0;
    (void)state;
    for (int when = 0; when < 3; when++) {
        begin();
        struct pprof_sum *const sum = pprof_sum_open_difference(PPROF_HEAP);
        if (when == 1)
            pprof_sum_mark_incomplete(sum);
        add(sum, samples, 1);
        pprof_sum_begin(sum);
        if (when == 2)
            pprof_sum_mark_incomplete(sum);
        uint8_t *const bytes = pprof_sum_encode(sum, PPROF_HEAP, &times, &size);
        assert_true((bytes != NULL) == (when == 0));
        free(bytes);
        end(sum);
    }
}

static struct http_request request;

/* Takes the export that begins its time as the first of two moments. */
static void a_window_takes_the_state_at_its_begin(void **state) {
    const struct harvest_sample before[] = {live(frames_a, 3, 300)};
    const struct harvest_sample after[] = {live(frames_a, 1, 100)};
    const struct harvest_sample *const exports[] = {before, after};
    (void)state;
    begin();
    struct window *const window = window_open(&request, WINDOW_PPROF, 100);
    window->sum = pprof_sum_open_difference(PPROF_HEAP);
    fake.sample_count = 1;
    for (unsigned i = 0; i < 2; i++) {
        fake.samples = exports[i];
        const struct encoded_export export = export_listed(&exporter, &api);
        window_take(window, export.writer, true);
        window_end_export(window, 1000 + 100 * i, 5000, exporter.sampled_nano);
        otlp_writer_close(export.writer);
        free(export.protobuf.bytes);
    }
    assert_int_equal(window->state, WINDOW_DONE);
    assert_int_equal(total(window->sum, 3), -200);
    end(window->sum);
    window->sum = NULL;
    window_close(window);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_difference_of_the_heap_is_between_two_moments),
        cmocka_unit_test(objects_that_no_later_export_mentions_were_freed),
        cmocka_unit_test(a_difference_without_moments_begins_with_its_time),
        cmocka_unit_test(a_difference_counts_threads_by_their_stacks),
        cmocka_unit_test(a_difference_that_lacks_a_moment_is_not_written),
        cmocka_unit_test(a_window_takes_the_state_at_its_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
