/* Tests the way from samples to the encoded message: merging, values, limits, and the same bytes
 * for the same input. */
#include "unit.h"

#include "decoded_export.h"

static struct harvest_sample memory(enum sample_kind kind, double objects, double bytes) {
    return (struct harvest_sample){
        .kind = kind,
        .thread_name = "",
        .frames = frames_a,
        .frame_count = 2,
        .values = {[MEASURED_OBJECTS] = objects, [MEASURED_BYTES] = bytes}};
}

static int64_t sum(const Profile *profile) {
    int64_t total = 0;
    for (size_t i = 0; i < profile->n_samples; i++)
        total += profile->samples[i]->values[0];
    return total;
}

static void equal_stacks_are_one_sample(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    const struct harvest_sample samples[] = {cpu(frames_a, 30000000), cpu(frames_b, 10000000),
                                             cpu(frames_a, 20000000)};
    fake.samples = samples;
    fake.sample_count = 3;
    const struct encoded_export export = export_once(&exporter, &api);
    Request *const request = decode(&export);
    const Profile *const profile = request->resource_profiles[0]->scope_profiles[0]->profiles[0];
    assert_int_equal(profile->n_samples, 2);
    assert_int_equal(profile->samples[0]->values[0], 5);
    assert_int_equal(profile->samples[1]->values[0], 1);
    assert_int_equal(profile->period, 10000000);
    assert_int_equal(profile->time_unix_nano, 1000);
    assert_int_equal(profile->duration_nano, 2000);
    assert_int_equal(export.samples, 2);
    release(request);
    free(export.protobuf.bytes);
}

static void no_cpu_time_is_lost_to_rounding(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    int64_t counted = 0;
    uint64_t nano = 0;
    for (uint64_t i = 0; i < 500; i++) {
        const struct harvest_sample samples[] = {cpu(frames_a, 3333333 + i * 1000),
                                                 cpu(frames_b, 7)};
        fake.samples = samples;
        fake.sample_count = 2;
        nano += (uint64_t)(samples[0].values[MEASURED_NANO] + samples[1].values[MEASURED_NANO]);
        const struct encoded_export export = export_once(&exporter, &api);
        if (!export.protobuf.bytes)
            continue; /* less than a period: carried to the next */
        Request *const request = decode(&export);
        counted += sum(request->resource_profiles[0]->scope_profiles[0]->profiles[0]);
        release(request);
        free(export.protobuf.bytes);
    }
    assert_int_equal(counted, nano / 10000000);
}

static void five_profiles_in_order(void **state) {
    (void)state;
    static const char *const types[] = {"samples", "alloc_objects", "alloc_space", "inuse_objects",
                                        "inuse_space"};
    static const int64_t values[] = {2, 3, 4097, 1, 51};
    static const char *const period_types[] = {"cpu", "memory", "memory", "memory", "memory"};
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    const struct harvest_sample samples[] = {
        memory(SAMPLE_LIVE, 1.2, 50.7), memory(SAMPLE_ALLOC, 2.6, 4096.6), cpu(frames_a, 20000000)};
    fake.samples = samples;
    fake.sample_count = 3;
    fake.dropped[DROP_BUSY] = 9;
    const struct encoded_export export = export_once(&exporter, &api);
    Request *const request = decode(&export);
    char **const strings = request->dictionary->string_table;
    Profile **const profiles = request->resource_profiles[0]->scope_profiles[0]->profiles;
    assert_int_equal(request->resource_profiles[0]->scope_profiles[0]->n_profiles, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(strings[profiles[i]->sample_type->type_strindex], types[i]);
        assert_string_equal(strings[profiles[i]->period_type->type_strindex], period_types[i]);
        assert_int_equal(sum(profiles[i]), values[i]);
        /* a dropped count, and the profiler's own CPU time */
        assert_int_equal(profiles[i]->n_attribute_indices, i == 0 ? 2 : 0);
        assert_int_equal(profiles[i]->period, i == 0 ? 10000000 : 4096);
    }
    release(request);
    free(export.protobuf.bytes);
}

/* --- the live heap --- */

/* Exports an interval of `count` samples. Sets *all to the number of its profiles of the live heap,
 * and *empty to the number of its empty profiles. */
static void snapshots(struct profile_exporter *exporter, const struct capture_api *api,
                      const struct harvest_sample *samples, size_t count, size_t *all,
                      size_t *empty) {
    fake.samples = samples;
    fake.sample_count = count;
    const struct encoded_export export = export_once(exporter, api);
    *all = *empty = 0;
    if (!export.protobuf.bytes)
        return;
    Request *const request = decode(&export);
    const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *const scope =
        request->resource_profiles[0]->scope_profiles[0];
    for (size_t i = 0; i < scope->n_profiles; i++) {
        const Profile *const profile = scope->profiles[i];
        const char *const type =
            request->dictionary->string_table[profile->sample_type->type_strindex];
        if (strcmp(type, "samples") == 0)
            continue; /* may be idle time (test_idle_time.c) */
        *all += strncmp(type, "inuse_", 6) == 0;
        *empty += sum(profile) == 0;
        if (sum(profile) == 0) {
            assert_int_equal(profile->n_samples, 1);
            assert_int_equal(profile->samples[0]->stack_index, 0);
            assert_int_equal(profile->time_unix_nano, 3000);
        }
    }
    release(request);
    free(export.protobuf.bytes);
}

static void an_emptied_heap_is_said_once(void **state) {
    (void)state;
    static const struct {
        bool live;
        size_t all, empty;
    } intervals[] = {{false, 0, 0}, {true, 2, 0}, {true, 2, 0},  {false, 2, 2},
                     {false, 0, 0}, {true, 2, 0}, {false, 2, 2}, {false, 0, 0}};
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    const struct harvest_sample samples[] = {cpu(frames_a, 20000000), memory(SAMPLE_LIVE, 1, 50)};
    for (size_t i = 0; i < 2 * sizeof intervals / sizeof *intervals; i++) {
        const size_t number = i % (sizeof intervals / sizeof *intervals);
        const bool idle = i != number; /* there is nothing else to send */
        size_t all;
        size_t empty;
        snapshots(&exporter, &api, samples + idle, (size_t)!idle + intervals[number].live, &all,
                  &empty);
        assert_int_equal(all, intervals[number].all);
        assert_int_equal(empty, intervals[number].empty);
    }
}

/* Checks that a heap is not reported as empty if memory was too short to merge it, or if its type
 * was turned off. */
static void a_heap_that_is_not_known_is_not_empty(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    const struct harvest_sample samples[] = {memory(SAMPLE_LIVE, 1, 50)};
    size_t all;
    size_t empty;
    snapshots(&exporter, &api, samples, 1, &all, &empty);
    struct merge nothing = {.items = {0}};
    profile_export_begin(&exporter, &nothing, false);
    assert_int_equal(exporter.emptied, 0);
    fake.off = PROFILE_HEAP; /* turned off during the interval */
    profile_export_begin(&exporter, &nothing, true);
    assert_int_equal(exporter.emptied, 0);
    fake.off = 0;
    snapshots(&exporter, &api, samples, 1, &all, &empty);
    profile_export_begin(&exporter, &nothing, true);
    assert_int_equal(exporter.emptied, 1 << SAMPLE_LIVE);
}

/* --- the live heap at its peak --- */

static int64_t attribute(const Request *request, const Profile *profile, const char *key) {
    for (size_t i = 0; i < profile->n_attribute_indices; i++) {
        const Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit *const listed =
            request->dictionary->attribute_table[profile->attribute_indices[i]];
        if (strcmp(request->dictionary->string_table[listed->key_strindex], key) == 0)
            return listed->value->int_value;
    }
    return -1;
}

/* Sends the peak in each export, though the live heap beside it may be empty. */
static void a_peak_says_when_it_was_and_how_high(void **state) {
    (void)state;
    const char *const environment[] = {"OTEL_PROFILER_SYMBOLS=none",
                                       "OTEL_PROFILER_TYPES=heap,heap_peak", NULL};
    const struct capture_api api = fake_capture(environment);
    struct profile_exporter exporter = open_exporter(&api);
    const struct harvest_sample samples[] = {memory(SAMPLE_HEAP_PEAK, 3, 5000)};
    static const char *const types[] = {"peak_objects", "peak_space"};
    fake.samples = samples;
    fake.sample_count = 1;
    fake.peak = (struct heap_peak_facts){.highest_bytes = 5100, .unix_nano = 2000};
    for (int round = 0; round < 2; round++) {
        const struct encoded_export export = export_once(&exporter, &api);
        Request *const request = decode(&export);
        const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *const scope =
            request->resource_profiles[0]->scope_profiles[0];
        assert_int_equal(scope->n_profiles, 2);
        for (int i = 0; i < 2; i++) {
            const Profile *const profile = scope->profiles[i];
            assert_string_equal(
                request->dictionary->string_table[profile->sample_type->type_strindex], types[i]);
            assert_int_equal(attribute(request, profile, "otelprof.heap.peak.highest"), 5100);
            assert_int_equal(attribute(request, profile, "otelprof.heap.peak.time"), 2000);
            assert_int_equal(profile->duration_nano, 0);
            assert_int_equal(profile->time_unix_nano, 3000);
            assert_int_equal(sum(profile), i ? 5000 : 3);
        }
        release(request);
        free(export.protobuf.bytes);
    }
}

/* --- limits and order --- */

static void the_smallest_become_other(void **state) {
    (void)state;
    static struct harvest_sample samples[100];
    static uint64_t frames[100][2];
    const char *const environment[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_MAX_SAMPLES=10",
                                       NULL};
    const struct capture_api api = fake_capture(environment);
    struct profile_exporter exporter = open_exporter(&api);
    for (uint64_t i = 0; i < 100; i++) {
        frames[i][0] = 0x1000 + i;
        samples[i] = cpu(frames[i], (i + 1) * 10000000);
    }
    fake.samples = samples;
    fake.sample_count = 100;
    const struct encoded_export export = export_once(&exporter, &api);
    Request *const request = decode(&export);
    const Profile *const profile = request->resource_profiles[0]->scope_profiles[0]->profiles[0];
    assert_int_equal(profile->n_samples, 10);
    assert_int_equal(sum(profile), 5050);
    assert_int_equal(profile->samples[0]->values[0], 100);
    bool other = false;
    for (size_t i = 0; i < request->dictionary->n_string_table; i++)
        other |= strcmp(request->dictionary->string_table[i], "[other]") == 0;
    assert_true(other);
    release(request);
    free(export.protobuf.bytes);
}

/* Sorts the samples of two threads, which are merged in some order of values. */
static void samples_go_by_thread_and_value(void **state) {
    (void)state;
    enum { COUNT = 40 };
    static struct harvest_sample samples[COUNT];
    static uint64_t frames[COUNT][2];
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    for (uint64_t i = 0; i < COUNT; i++) {
        frames[i][0] = 0x1000 + i;
        samples[i] = cpu(frames[i], (i * 7 % 5 + 1) * 10000000);
        samples[i].tid = i < COUNT / 2 ? 9 : 8;
    }
    fake.samples = samples;
    fake.sample_count = COUNT;
    const struct encoded_export export = export_once(&exporter, &api);
    Request *const request = decode(&export);
    const Profile *const profile = request->resource_profiles[0]->scope_profiles[0]->profiles[0];
    assert_int_equal(profile->n_samples, COUNT);
    for (size_t i = 1; i < COUNT; i++) {
        const int64_t before = profile->samples[i - 1]->values[0];
        const int64_t value = profile->samples[i]->values[0];
        if (i == COUNT / 2)
            assert_int_equal(value, 5);
        else
            assert_true(before >= value);
    }
    release(request);
    free(export.protobuf.bytes);
}

/* Puts locations that many stacks have first; stacks still name the right locations. */
static void locations_go_by_use(void **state) {
    (void)state;
    enum { COUNT = 300, DEPTH = 3 };
    static struct harvest_sample samples[COUNT];
    static uint64_t frames[COUNT][DEPTH];
    static size_t uses[COUNT + 5];
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint64_t stack[DEPTH] = {0x1000 + i, 0x5000 + i % 3, 0x9000};
        memcpy(frames[i], stack, sizeof stack);
        samples[i] = cpu(frames[i], (i + 1) * 10000000);
        samples[i].frame_count = DEPTH;
    }
    fake.samples = samples;
    fake.sample_count = COUNT;
    const struct encoded_export export = export_once(&exporter, &api);
    Request *const request = decode(&export);
    const Profile *const profile = request->resource_profiles[0]->scope_profiles[0]->profiles[0];
    assert_int_equal(request->dictionary->n_location_table, 1 + COUNT + 3 + 1);
    for (size_t i = 0; i < COUNT; i++) {
        const int32_t *const locations =
            request->dictionary->stack_table[profile->samples[i]->stack_index]->location_indices;
        const size_t number = (size_t)profile->samples[i]->values[0] - 1;
        for (size_t k = 0; k < DEPTH; k++) {
            uses[locations[k]]++;
            assert_int_equal(request->dictionary->location_table[locations[k]]->address,
                             frames[number][k]);
        }
    }
    assert_int_equal(uses[1], COUNT);
    for (size_t i = 2; i < COUNT + 5; i++)
        assert_true(uses[i - 1] >= uses[i]);
    release(request);
    free(export.protobuf.bytes);
}

static void nothing_is_sent_without_samples(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    const struct encoded_export export = export_once(&exporter, &api);
    assert_null(export.protobuf.bytes);
}

/* Masks the profiles' ids, which differ in each export: beyond these, equal input gives equal
 * bytes. */
static void equal_input_gives_equal_bytes(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    const struct harvest_sample samples[] = {cpu(frames_a, 30000000), cpu(frames_b, 10000000)};
    struct encoded_export exports[2];
    struct profile_exporter exporter = open_exporter(&api);
    fake.samples = samples;
    fake.sample_count = 2;
    for (int i = 0; i < 2; i++) {
        exporter.remainders.of[SAMPLE_CPU] = 0;
        exporter.sampled_before[SAMPLE_CPU] = 0; /* the interval is the same */
        exports[i] = export_once(&exporter, &api);
        Request *const request = decode(&exports[i]);
        const ProtobufCBinaryData id =
            request->resource_profiles[0]->scope_profiles[0]->profiles[0]->profile_id;
        uint8_t *const at =
            memmem(exports[i].protobuf.bytes, exports[i].protobuf.size, id.data, id.len);
        assert_non_null(at);
        memset(at, 0, id.len);
        release(request);
    }
    assert_int_equal(exports[0].protobuf.size, exports[1].protobuf.size);
    assert_memory_equal(exports[0].protobuf.bytes, exports[1].protobuf.bytes,
                        exports[0].protobuf.size);
}

static void texts_that_are_not_utf8(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    struct harvest_sample sample = cpu(frames_a, 30000000);
    sample.thread_name = "w\xffrker";
    fake.samples = &sample;
    fake.sample_count = 1;
    const struct encoded_export export = export_once(&exporter, &api);
    assert_non_null(memmem(export.protobuf.bytes, export.protobuf.size, "w?rker", 6));
    free(export.protobuf.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_stacks_are_one_sample),
        cmocka_unit_test(no_cpu_time_is_lost_to_rounding),
        cmocka_unit_test(five_profiles_in_order),
        cmocka_unit_test(an_emptied_heap_is_said_once),
        cmocka_unit_test(a_heap_that_is_not_known_is_not_empty),
        cmocka_unit_test(a_peak_says_when_it_was_and_how_high),
        cmocka_unit_test(the_smallest_become_other),
        cmocka_unit_test(samples_go_by_thread_and_value),
        cmocka_unit_test(locations_go_by_use),
        cmocka_unit_test(nothing_is_sent_without_samples),
        cmocka_unit_test(equal_input_gives_equal_bytes),
        cmocka_unit_test(texts_that_are_not_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
