/* From samples to the encoded message: merging, values, limits, and the same bytes for the same
 * input. */
#include "unit.h"

#include "encode/merge.h"
#include "encode/profile_export.h"
#include "export/compress.h"
#include "export/queue.h"
#include "fake_capture.h"
#include "profiles_service.pb-c.h"

#include <zlib.h>
#include <zstd.h>

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    Request;
typedef Opentelemetry__Proto__Profiles__V1development__Profile Profile;

static Request *decode(const struct encoded_export *export) {
    Request *const request =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, export->protobuf.size, export->protobuf.bytes);
    assert_non_null(request);
    return request;
}

static void release(Request *request) {
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        request, NULL);
}

static const uint64_t frames_a[] = {0x1000, 0x2000};
static const uint64_t frames_b[] = {0x1010, 0x2000};

static struct harvest_sample cpu(const uint64_t *frames, uint64_t nano) {
    return (struct harvest_sample){.kind = SAMPLE_CPU,
                                   .tid = 7,
                                   .thread_name = "worker",
                                   .frames = frames,
                                   .frame_count = 2,
                                   .values = {[MEASURED_NANO] = (double)nano}};
}

static struct harvest_sample memory(enum sample_kind kind, double objects, double bytes) {
    return (struct harvest_sample){
        .kind = kind,
        .thread_name = "",
        .frames = frames_a,
        .frame_count = 2,
        .values = {[MEASURED_OBJECTS] = objects, [MEASURED_BYTES] = bytes}};
}

static const char *const quiet[] = {"OTEL_PROFILER_SYMBOLS=none", NULL};

static struct encoded_export export_once(struct profile_exporter *exporter,
                                         const struct capture_api *api) {
    struct merge merge = {.items = {0}};
    assert_true(merge_harvest(&merge, api));
    profile_export_begin(exporter, &merge, true);
    const struct encoded_export export =
        profile_export(exporter, &merge, export_part_whole(&merge), 1000, 3000);
    merge_free(&merge);
    return export;
}

static struct profile_exporter open_exporter(const struct capture_api *api) {
    return (struct profile_exporter){.api = api,
                                     .forms = FORM_PROTOBUF,
                                     .resource = resource_open(api->config, api->log, ""),
                                     .symbolizer =
                                         symbolizer_open(api->config->symbols, api->guarded)};
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

/* How many profiles of the live heap an interval of `count` samples has, and how many of these are
 * of nothing. */
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

/* What is missing in a merge for want of memory is not gone. */
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
    profile_export_begin(&exporter, &nothing, true);
    assert_int_equal(exporter.emptied, 1 << SAMPLE_LIVE);
}

/* --- the resource --- */

struct known {
    const char *key;
    bool identifying;
};

static const struct known *known_attribute(const char *key) {
    enum { DESCRIBING, IDENTIFYING };
    static const struct known known[] = {
#define RESOURCE_ATTRIBUTE(key, when, what) {key, when},
#include "resource_attributes.def"
#undef RESOURCE_ATTRIBUTE
    };
    size_t identifying = 0;
    const struct known *found = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        identifying += known[i].identifying;
        if (strcmp(known[i].key, key) == 0)
            found = &known[i];
    }
    assert_in_range(identifying, 1, 15);
    return found;
}

/* Which attributes an export with one sample has: how many that are ours, and how many others. */
static void count_attributes(const char *const *environment, size_t *ours, size_t *describing,
                             size_t *others) {
    const struct capture_api api = fake_capture(environment);
    struct profile_exporter exporter = open_exporter(&api);
    const struct harvest_sample samples[] = {cpu(frames_a, 20000000)};
    fake.samples = samples;
    fake.sample_count = 1;
    const struct encoded_export export = export_once(&exporter, &api);
    Request *const request = decode(&export);
    const Opentelemetry__Proto__Resource__V1__Resource *const resource =
        request->resource_profiles[0]->resource;
    *ours = *describing = *others = 0;
    for (size_t i = 0; i < resource->n_attributes; i++) {
        const struct known *const known = known_attribute(resource->attributes[i]->key);
        *ours += known != NULL;
        *describing += known && !known->identifying;
        *others += !known;
    }
    release(request);
    free(export.protobuf.bytes);
    resource_close((struct resource *)(uintptr_t)exporter.resource);
}

static void what_identifies_is_sent_and_the_rest_on_demand(void **state) {
    (void)state;
    size_t ours;
    size_t describing;
    size_t others;
    static const char *const defaults[] = {"OTEL_PROFILER_SYMBOLS=none", NULL};
    count_attributes(defaults, &ours, &describing, &others);
    assert_in_range(ours, 10, 15);
    assert_int_equal(describing, 0);
    assert_int_equal(others, 0);
    static const char *const full[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_RESOURCE=full",
                                       NULL};
    count_attributes(full, &ours, &describing, &others);
    assert_in_range(describing, 5, 8);
    assert_int_equal(others, 0);
    static const char *const own[] = {"OTEL_PROFILER_SYMBOLS=none",
                                      "OTEL_RESOURCE_ATTRIBUTES=a=1,b=2,os.version=mine", NULL};
    count_attributes(own, &ours, &describing, &others);
    assert_int_equal(others, 2);
    assert_int_equal(describing, 1);
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

/* Two threads, whose samples are merged in some order of values. */
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

/* Locations that many stacks have come first, and stacks still name the right ones. */
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

/* Ids and times apart, which are masked here, equal input gives equal bytes. */
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

/* --- compression and the queue --- */

static void compression_can_be_undone(void **state) {
    (void)state;
    enum { SIZE = 100000 };
    static uint8_t back[SIZE];
    for (int method = COMPRESSION_NONE; method <= COMPRESSION_ZSTD; method++) {
        size_t size = SIZE;
        uint8_t *bytes = malloc(SIZE);
        for (int i = 0; i < SIZE; i++)
            bytes[i] = (uint8_t)(i / 7);
        const char *const encoding = compress_in_place((enum compression)method, &bytes, &size);
        if (method == COMPRESSION_NONE) {
            assert_null(encoding);
            assert_int_equal(size, SIZE);
        } else if (method == COMPRESSION_GZIP) {
            z_stream stream = {
                .next_in = bytes, .avail_in = (uInt)size, .next_out = back, .avail_out = SIZE};
            assert_string_equal(encoding, "gzip");
            assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
            assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
            inflateEnd(&stream);
            assert_int_equal(stream.total_out, SIZE);
        } else {
            assert_string_equal(encoding, "zstd");
            assert_int_equal(ZSTD_decompress(back, SIZE, bytes, size), SIZE);
        }
        if (method != COMPRESSION_NONE)
            for (int i = 0; i < SIZE; i++)
                assert_int_equal(back[i], (uint8_t)(i / 7));
        free(bytes);
    }
}

static void a_full_queue_loses_the_oldest(void **state) {
    (void)state;
    struct queue queue = {.max_bytes = 100};
    assert_int_equal(queue_push(&queue, malloc(40), 40, NULL, 1), 0);
    assert_int_equal(queue_push(&queue, malloc(40), 40, NULL, 2), 0);
    assert_int_equal(queue_push(&queue, malloc(40), 40, NULL, 4), 1);
    assert_int_equal(queue_push(&queue, malloc(101), 101, NULL, 8), 8);
    struct export *const oldest = queue_pop(&queue);
    assert_int_equal(oldest->samples, 2);
    assert_int_equal(queue_put_back(&queue, oldest), 0);
    assert_int_equal(queue_push(&queue, malloc(90), 90, NULL, 16), 6);
    assert_int_equal(queue.bytes, 90);
    assert_int_equal(queue_clear(&queue), 16);
    assert_null(queue_pop(&queue));
    assert_int_equal(queue.bytes, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_stacks_are_one_sample),
        cmocka_unit_test(no_cpu_time_is_lost_to_rounding),
        cmocka_unit_test(five_profiles_in_order),
        cmocka_unit_test(an_emptied_heap_is_said_once),
        cmocka_unit_test(a_heap_that_is_not_known_is_not_empty),
        cmocka_unit_test(what_identifies_is_sent_and_the_rest_on_demand),
        cmocka_unit_test(the_smallest_become_other),
        cmocka_unit_test(samples_go_by_thread_and_value),
        cmocka_unit_test(locations_go_by_use),
        cmocka_unit_test(nothing_is_sent_without_samples),
        cmocka_unit_test(equal_input_gives_equal_bytes),
        cmocka_unit_test(texts_that_are_not_utf8),
        cmocka_unit_test(compression_can_be_undone),
        cmocka_unit_test(a_full_queue_loses_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
