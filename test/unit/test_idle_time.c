/* Tests that an export reports time in which nothing was sampled, by a profile without samples. */
#include "unit.h"

#include "decoded_export.h"

/* Describes one profile of an export. Lists of them have the export's order, and end with an empty
 * one. */
struct told {
    const char *type;
    uint64_t begin;
    uint64_t end;
    size_t samples;
};

static const char *const cpu_alone[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_TYPES=cpu",
                                        NULL};

static struct harvest_sample sample(enum sample_kind kind) {
    return (struct harvest_sample){.kind = kind,
                                   .thread_name = "",
                                   .frames = frames_a,
                                   .frame_count = 2,
                                   .values = {2e7, 2e7}};
}

static void assert_told(const struct encoded_export *export, const struct told *expected) {
    Request *const request = decode(export);
    const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *const scope =
        request->resource_profiles[0]->scope_profiles[0];
    size_t count = 0;
    for (; expected[count].type; count++) {
        const Profile *const profile = scope->profiles[count];
        assert_true(count < scope->n_profiles);
        assert_string_equal(request->dictionary->string_table[profile->sample_type->type_strindex],
                            expected[count].type);
        assert_int_equal(profile->time_unix_nano, expected[count].begin);
        assert_int_equal(profile->time_unix_nano + profile->duration_nano, expected[count].end);
        assert_int_equal(profile->n_samples, expected[count].samples);
        assert_true(profile->period > 0);
    }
    assert_int_equal(scope->n_profiles, count);
    release(request);
}

/* Exports an interval with one sample of `kind`, or with none if `kind` is SAMPLE_KINDS. Checks
 * that the export has the expected profiles; NULL: there is no export. */
static void interval(struct profile_exporter *exporter, const struct capture_api *api,
                     enum sample_kind kind, uint64_t start, uint64_t end,
                     const struct told *expected) {
    const struct harvest_sample one = kind == SAMPLE_CPU ? cpu(frames_a, 20000000) : sample(kind);
    fake.samples = &one;
    fake.sample_count = kind < SAMPLE_KINDS;
    struct encoded_export export = export_interval(exporter, api, start, end);
    otlp_writer_close(export.writer);
    assert_int_equal(export.protobuf.bytes != NULL, expected != NULL);
    if (expected) {
        assert_told(&export, expected);
        assert_int_equal(export.is_idle, expected[0].samples == 0);
    }
    free(export.protobuf.bytes);
}

static void time_without_samples_is_told_with_the_next_ones(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    struct profile_exporter exporter = open_exporter(&api);
    interval(&exporter, &api, SAMPLE_KINDS, 1000, 2000, NULL);
    interval(&exporter, &api, SAMPLE_KINDS, 2000, 3000, NULL);
    interval(&exporter, &api, SAMPLE_CPU, 3000, 4000,
             (struct told[]){{"samples", 3000, 4000, 1}, {"samples", 1000, 3000, 0}, {0}});
    interval(&exporter, &api, SAMPLE_CPU, 4000, 5000,
             (struct told[]){{"samples", 4000, 5000, 1}, {0}});
}

static void time_without_samples_is_told_beside_a_snapshot(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    interval(&exporter, &api, SAMPLE_KINDS, 1000, 2000, NULL);
    interval(&exporter, &api, SAMPLE_LIVE, 2000, 3000,
             (struct told[]){{"inuse_objects", 3000, 3000, 1},
                             {"inuse_space", 3000, 3000, 1},
                             {"samples", 1000, 3000, 0},
                             {0}});
}

/* Allocations were sampled, so the interval is covered as it is. */
static void other_samples_tell_that_the_time_was_covered(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    interval(
        &exporter, &api, SAMPLE_ALLOC, 1000, 2000,
        (struct told[]){{"alloc_objects", 1000, 2000, 1}, {"alloc_space", 1000, 2000, 1}, {0}});
    interval(&exporter, &api, SAMPLE_CPU, 2000, 3000,
             (struct told[]){{"samples", 2000, 3000, 1}, {0}});
}

static void idle_time_is_told_alone_where_that_is_wanted(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    struct profile_exporter exporter = open_exporter(&api);
    exporter.reports_idle = true;
    for (uint64_t start = 1000; start < 3000; start += 1000)
        interval(&exporter, &api, SAMPLE_KINDS, start, start + 1000,
                 (struct told[]){{"samples", start, start + 1000, 0}, {0}});
    exporter.reports_idle = false;
    interval(&exporter, &api, SAMPLE_KINDS, 3000, 4000, NULL);
}

static void turn_off(uint64_t now) {
    fake.off = PROFILE_CPU;
    fake.off_since = now;
}

static void turn_on(uint64_t now) {
    fake.off = 0;
    fake.off_nano += now - fake.off_since;
    fake.on_since = now;
}

/* Turns sampling off: nothing is known of the time until it is on again. */
static void time_in_which_sampling_was_off_is_not_covered(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    struct profile_exporter exporter = open_exporter(&api);
    exporter.reports_idle = true;
    turn_off(0);
    interval(&exporter, &api, SAMPLE_KINDS, 1000, 2000, NULL);
    interval(&exporter, &api, SAMPLE_KINDS, 2000, 3000, NULL);
    turn_on(3000);
    interval(&exporter, &api, SAMPLE_KINDS, 3000, 4000,
             (struct told[]){{"samples", 3000, 4000, 0}, {0}});
}

static void time_is_covered_from_the_moment_that_sampling_is_turned_on(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    struct profile_exporter exporter = open_exporter(&api);
    exporter.reports_idle = true;
    turn_off(0);
    interval(&exporter, &api, SAMPLE_KINDS, 1000, 2000, NULL);
    turn_on(2400);
    interval(&exporter, &api, SAMPLE_KINDS, 2000, 3000,
             (struct told[]){{"samples", 2400, 3000, 0}, {0}});
    turn_off(3250);
    interval(&exporter, &api, SAMPLE_KINDS, 3000, 4000,
             (struct told[]){{"samples", 3000, 3250, 0}, {0}});
    interval(&exporter, &api, SAMPLE_KINDS, 4000, 5000, NULL);
}

/* Checks that a profile covers the time in which sampling was on: its CPU time divided by that time
 * is the program's load. */
static void samples_cover_the_time_in_which_sampling_was_on(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    struct profile_exporter exporter = open_exporter(&api);
    turn_off(0);
    interval(&exporter, &api, SAMPLE_KINDS, 1000, 2000, NULL);
    turn_on(2400);
    turn_off(2600);
    interval(&exporter, &api, SAMPLE_CPU, 2000, 3000,
             (struct told[]){{"samples", 2400, 2600, 1}, {0}});
    turn_on(3100);
    turn_off(3400);
    turn_on(3900);
    interval(&exporter, &api, SAMPLE_CPU, 3000, 4000,
             (struct told[]){{"samples", 3600, 4000, 1}, {0}});
}

/* Acts as a program that calls otelprof_stop() before the helper has loaded this code. */
static void time_until_sampling_is_turned_off_early_is_covered(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    fake.off_nano = 1500; /* time until the process's profiling began */
    turn_off(1700);
    struct profile_exporter exporter = open_exporter(&api);
    interval(&exporter, &api, SAMPLE_CPU, 1500, 4500,
             (struct told[]){{"samples", 1500, 1700, 1}, {0}});
}

/* A harvest ends a little later than its interval. Nothing was sampled in the second interval, and
 * a duration of 0 would mean sums since the start. */
static void samples_of_the_interval_before_cover_no_time(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    struct profile_exporter exporter = open_exporter(&api);
    interval(&exporter, &api, SAMPLE_CPU, 1000, 2000,
             (struct told[]){{"samples", 1000, 2000, 1}, {0}});
    turn_off(2000);
    interval(&exporter, &api, SAMPLE_CPU, 2000, 90000,
             (struct told[]){{"samples", 2000, 2001, 1}, {0}});
}

/* Exports a child that has ended. Its profile covers its life, not its parent's interval; no idle
 * time is reported. */
static void a_child_that_ended_covers_its_life(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    struct profile_exporter exporter = open_exporter(&api);
    const struct harvest_sample one = cpu(frames_a, 20000000);
    struct child_export child = {.child = {.start_unix_nano = 5000, .lived_nano = 700}};
    interval(&exporter, &api, SAMPLE_CPU, 1000, 2000,
             (struct told[]){{"samples", 1000, 2000, 1}, {0}});
    fake.samples = &one;
    fake.sample_count = 1;
    assert_true(merge_harvest(&child.merge, &api));
    exporter.is_of_children = true;
    struct encoded_export export = profile_export_children(&exporter, &child, 1);
    assert_told(&export, (struct told[]){{"samples", 5000, 5700, 1}, {0}});
    otlp_writer_close(export.writer);
    free(export.protobuf.bytes);
    merge_free(&child.merge);
}

/* Leaves holes between intervals, in which exports were held back or sampling was off: no export
 * reports a hole as covered. */
static void a_hole_between_idle_times_is_not_covered(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    struct profile_exporter exporter = open_exporter(&api);
    interval(&exporter, &api, SAMPLE_KINDS, 1000, 2000, NULL);
    interval(&exporter, &api, SAMPLE_CPU, 5000, 6000,
             (struct told[]){{"samples", 5000, 6000, 1}, {"samples", 1000, 2000, 0}, {0}});
    interval(&exporter, &api, SAMPLE_KINDS, 6000, 7000, NULL);
    interval(&exporter, &api, SAMPLE_KINDS, 8000, 9000, NULL);
    interval(&exporter, &api, SAMPLE_CPU, 9000, 9500,
             (struct told[]){{"samples", 9000, 9500, 1}, {"samples", 8000, 9000, 0}, {0}});
}

/* An interval that is too large for one request is encoded again, in parts. */
static void a_divided_interval_tells_of_its_idle_time_once(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    struct export_part halves[2];
    struct merge merge = {.items = {0}};
    interval(&exporter, &api, SAMPLE_KINDS, 1000, 2000, NULL);
    const struct harvest_sample samples[] = {sample(SAMPLE_CPU), sample(SAMPLE_ALLOC)};
    fake.samples = samples;
    fake.sample_count = 2;
    assert_true(merge_harvest(&merge, &api));
    profile_export_begin(&exporter, &merge, true);
    assert_true(export_part_divide(export_part_whole(&merge), halves));
    static const struct told expected[2][4] = {
        {{"samples", 2000, 3000, 1}, {"samples", 1000, 2000, 0}, {0}},
        {{"alloc_objects", 2000, 3000, 1}, {"alloc_space", 2000, 3000, 1}, {0}}};
    for (int i = 0; i < 2; i++) {
        struct encoded_export export = profile_export(&exporter, &merge, halves[i], 2000, 3000);
        assert_told(&export, expected[i]);
        otlp_writer_close(export.writer);
        free(export.protobuf.bytes);
    }
    merge_free(&merge);
}

/* Divides an interval without CPU time: its first part is empty, and the samples of its second part
 * show that its time was covered. */
static void a_divided_interval_with_samples_is_not_idle(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    struct export_part halves[2];
    struct merge merge = {.items = {0}};
    exporter.reports_idle = true;
    const struct harvest_sample samples[] = {sample(SAMPLE_ALLOC)};
    fake.samples = samples;
    fake.sample_count = 1;
    assert_true(merge_harvest(&merge, &api));
    profile_export_begin(&exporter, &merge, true);
    assert_true(export_part_divide(export_part_whole(&merge), halves));
    for (int i = 0; i < 2; i++) {
        struct encoded_export export = profile_export(&exporter, &merge, halves[i], 2000, 3000);
        assert_int_equal(export.protobuf.bytes != NULL, i == 1);
        otlp_writer_close(export.writer);
        free(export.protobuf.bytes);
    }
    assert_int_equal(exporter.remainders.idle.begin, exporter.remainders.idle.end);
    merge_free(&merge);
}

/* Exports an interval whose CPU time is less than a sample's worth, so that the next export has
 * it. */
static void an_interval_whose_cpu_time_is_carried_on_is_covered(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    struct profile_exporter exporter = open_exporter(&api);
    const struct harvest_sample little = cpu(frames_a, 1000);
    fake.samples = &little;
    fake.sample_count = 1;
    struct encoded_export export = export_interval(&exporter, &api, 1000, 2000);
    assert_null(export.protobuf.bytes);
    otlp_writer_close(export.writer);
    interval(&exporter, &api, SAMPLE_CPU, 2000, 3000,
             (struct told[]){{"samples", 2000, 3000, 1}, {"samples", 1000, 2000, 0}, {0}});
}

/* Reports idle time to a recording alone: the receiver has not seen it, so the next export to the
 * receiver reports it again. */
static void idle_time_that_was_told_alone_is_told_again_to_a_receiver(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(cpu_alone);
    struct profile_exporter exporter = open_exporter(&api);
    exporter.reports_idle = exporter.keeps_idle = true;
    interval(&exporter, &api, SAMPLE_KINDS, 1000, 2000,
             (struct told[]){{"samples", 1000, 2000, 0}, {0}});
    exporter.reports_idle = false;
    interval(&exporter, &api, SAMPLE_CPU, 2000, 3000,
             (struct told[]){{"samples", 2000, 3000, 1}, {"samples", 1000, 2000, 0}, {0}});
    interval(&exporter, &api, SAMPLE_CPU, 3000, 4000,
             (struct told[]){{"samples", 3000, 4000, 1}, {0}});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_without_samples_is_told_with_the_next_ones),
        cmocka_unit_test(time_without_samples_is_told_beside_a_snapshot),
        cmocka_unit_test(other_samples_tell_that_the_time_was_covered),
        cmocka_unit_test(idle_time_is_told_alone_where_that_is_wanted),
        cmocka_unit_test(time_in_which_sampling_was_off_is_not_covered),
        cmocka_unit_test(time_is_covered_from_the_moment_that_sampling_is_turned_on),
        cmocka_unit_test(samples_cover_the_time_in_which_sampling_was_on),
        cmocka_unit_test(time_until_sampling_is_turned_off_early_is_covered),
        cmocka_unit_test(samples_of_the_interval_before_cover_no_time),
        cmocka_unit_test(a_child_that_ended_covers_its_life),
        cmocka_unit_test(a_hole_between_idle_times_is_not_covered),
        cmocka_unit_test(a_divided_interval_tells_of_its_idle_time_once),
        cmocka_unit_test(a_divided_interval_with_samples_is_not_idle),
        cmocka_unit_test(an_interval_whose_cpu_time_is_carried_on_is_covered),
        cmocka_unit_test(idle_time_that_was_told_alone_is_told_again_to_a_receiver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
