/* Tests samples of waiting threads: the attributes of each kind, in protobuf, JSON and tables. */
#include "unit.h"

#include "console_text.h"
#include "decoded_export.h"
#include "encode/redact.h"

typedef Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit Attribute;
typedef Opentelemetry__Proto__Common__V1__AnyValue Value;

static const char *const everything[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_TYPES=all",
                                         NULL};
/* Function 1 has a name: fake_capture.h. */
static const uint64_t named_frame = ((uint64_t)1 << FRAME_SOURCE_SHIFT) + 1;
static const uint64_t leaf[] = {0x1000, 0x2000};

static const struct wait_detail held_lock = {
    .kind = WAIT_LOCK,
    .condition = CONDITION_BLOCKED,
    .holder = 4711,
    .object = 0x7f00beef,
    .waited_nano = 1500000000,
    .holder_frame_count = 2,
    .holder_frames = {((uint64_t)1 << FRAME_SOURCE_SHIFT) + 1, 0x3000}};
static const struct wait_detail sleeping = {.kind = WAIT_SLEEP};
static const struct wait_detail running = {.condition = CONDITION_RUNNING};

static struct harvest_sample waiting(enum sample_kind kind, uint32_t tid,
                                     const struct wait_detail *wait, double first, double second) {
    return (struct harvest_sample){.kind = kind,
                                   .tid = tid,
                                   .thread_name = "waiter",
                                   .frames = leaf,
                                   .frame_count = 2,
                                   .wait = wait,
                                   .holder_name = wait->holder ? "holder" : "",
                                   .values = {first, second}};
}

static Request *export_of(const struct capture_api *api, const struct harvest_sample *samples,
                          size_t count, struct encoded_export *export) {
    struct profile_exporter exporter = open_exporter(api);
    fake.samples = samples;
    fake.sample_count = count;
    *export = export_once(&exporter, api);
    return decode(export);
}

static const Profile *profile_of(const Request *request, const char *type) {
    const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *const scope =
        request->resource_profiles[0]->scope_profiles[0];
    for (size_t i = 0; i < scope->n_profiles; i++)
        if (strcmp(
                request->dictionary->string_table[scope->profiles[i]->sample_type->type_strindex],
                type) == 0)
            return scope->profiles[i];
    return NULL;
}

/* Returns the attribute's value; NULL: the sample does not have the attribute. */
static const Value *value_of(const Request *request, const Profile *profile, size_t sample,
                             const char *key) {
    for (size_t i = 0; i < profile->samples[sample]->n_attribute_indices; i++) {
        const Attribute *const attribute =
            request->dictionary->attribute_table[profile->samples[sample]->attribute_indices[i]];
        if (strcmp(request->dictionary->string_table[attribute->key_strindex], key) == 0)
            return attribute->value;
    }
    return NULL;
}

static const char *text_of(const Request *request, const Profile *profile, const char *key) {
    const Value *const value = value_of(request, profile, 0, key);
    return value ? value->string_value : "";
}

static void a_waiter_names_the_lock_and_its_holder(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(everything);
    const struct harvest_sample sample = waiting(SAMPLE_OFF_CPU, 7, &held_lock, 3e9, 0);
    struct encoded_export export;
    Request *const request = export_of(&api, &sample, 1, &export);
    const Profile *const profile = profile_of(request, "off_cpu");
    assert_int_equal(profile->samples[0]->values[0], 3000000000);
    assert_string_equal(text_of(request, profile, "otelprof.wait.kind"), "lock");
    assert_string_equal(text_of(request, profile, "otelprof.lock.address"), "0x7f00beef");
    assert_int_equal(value_of(request, profile, 0, "otelprof.lock.holder.thread.id")->int_value,
                     4711);
    assert_string_equal(text_of(request, profile, "otelprof.lock.holder.thread.name"), "holder");
    const Value *const stack = value_of(request, profile, 0, "otelprof.lock.holder.stack");
    assert_int_equal(stack->array_value->n_values, 2);
    assert_string_equal(stack->array_value->values[0]->string_value, "[anonymous]");
    assert_string_equal(stack->array_value->values[1]->string_value, "interpreted");
    assert_null(value_of(request, profile, 0, "otelprof.thread.state"));
    assert_null(value_of(request, profile, 0, "otelprof.wait.duration"));
    release(request);
    free(export.protobuf.bytes);
}

static void a_contention_has_two_values_and_no_stack_of_the_holder(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(everything);
    const struct harvest_sample sample = waiting(SAMPLE_LOCK, 7, &held_lock, 12.4, 5e6);
    struct encoded_export export;
    Request *const request = export_of(&api, &sample, 1, &export);
    assert_int_equal(profile_of(request, "contentions")->samples[0]->values[0], 12);
    const Profile *const profile = profile_of(request, "delay");
    assert_int_equal(profile->samples[0]->values[0], 5000000);
    assert_string_equal(request->dictionary->string_table[profile->period_type->type_strindex],
                        "lock");
    assert_string_equal(text_of(request, profile, "otelprof.lock.holder.thread.name"), "holder");
    assert_null(value_of(request, profile, 0, "otelprof.lock.holder.stack"));
    release(request);
    free(export.protobuf.bytes);
}

static void a_thread_has_its_state_and_its_begin(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(everything);
    const struct harvest_sample samples[] = {waiting(SAMPLE_THREAD, 7, &held_lock, 1, 0),
                                             waiting(SAMPLE_THREAD, 8, &running, 1, 0)};
    struct encoded_export export;
    Request *const request = export_of(&api, samples, 2, &export);
    const Profile *const profile = profile_of(request, "threads");
    assert_int_equal(profile->n_samples, 2);
    assert_int_equal(profile->duration_nano, 0);
    assert_string_equal(text_of(request, profile, "otelprof.thread.state"), "blocked");
    assert_true(value_of(request, profile, 0, "otelprof.wait.duration")->double_value == 1.5e9);
    assert_string_equal(value_of(request, profile, 1, "otelprof.thread.state")->string_value,
                        "running");
    assert_null(value_of(request, profile, 1, "otelprof.wait.duration"));
    assert_null(value_of(request, profile, 1, "otelprof.wait.kind"));
    release(request);
    free(export.protobuf.bytes);
}

/* Exports waits for two objects, in turns: different objects make different samples, and equal
 * waits are one sample. */
static void the_awaited_object_distinguishes_samples(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(everything);
    const struct harvest_sample samples[] = {
        waiting(SAMPLE_OFF_CPU, 7, &held_lock, 1, 0), waiting(SAMPLE_OFF_CPU, 7, &sleeping, 2, 0),
        waiting(SAMPLE_OFF_CPU, 7, &held_lock, 4, 0), waiting(SAMPLE_OFF_CPU, 7, &sleeping, 8, 0)};
    struct encoded_export export;
    Request *const request = export_of(&api, samples, 4, &export);
    const Profile *const profile = profile_of(request, "off_cpu");
    assert_int_equal(profile->n_samples, 2);
    assert_int_equal(profile->samples[0]->values[0], 10);
    assert_string_equal(text_of(request, profile, "otelprof.wait.kind"), "sleep");
    assert_null(value_of(request, profile, 0, "otelprof.lock.address"));
    assert_int_equal(profile->samples[1]->values[0], 5);
    release(request);
    free(export.protobuf.bytes);
}

/* A kind has the attributes that its line in profile_kinds.def names, and no others. */
static void time_on_a_processor_is_no_wait(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(everything);
    struct harvest_sample sample = cpu(leaf, 20000000);
    sample.wait = &held_lock;
    struct encoded_export export;
    Request *const request = export_of(&api, &sample, 1, &export);
    const Profile *const profile = profile_of(request, "samples");
    assert_null(value_of(request, profile, 0, "otelprof.wait.kind"));
    assert_null(value_of(request, profile, 0, "otelprof.lock.address"));
    release(request);
    free(export.protobuf.bytes);
}

static void names_of_holders_are_redacted(void **state) {
    (void)state;
    const char *const environment[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_TYPES=all",
                                       "OTEL_PROFILER_REDACT=holder,interp*", NULL};
    const struct capture_api api = fake_capture(environment);
    const struct harvest_sample sample = waiting(SAMPLE_OFF_CPU, 7, &held_lock, 3e9, 0);
    struct encoded_export export;
    Request *const request = export_of(&api, &sample, 1, &export);
    const Profile *const profile = profile_of(request, "off_cpu");
    assert_string_equal(text_of(request, profile, "otelprof.lock.holder.thread.name"), REDACTED);
    const Value *const stack = value_of(request, profile, 0, "otelprof.lock.holder.stack");
    assert_string_equal(stack->array_value->values[1]->string_value, REDACTED);
    release(request);
    free(export.protobuf.bytes);
}

/* Exports a wait for a lock at this address; `name` receives the lock's name. The fake's only
 * object is a file without symbols. */
static void name_of_lock(uint64_t address, const char *const *environment, char name[static 64]) {
    const struct harvest_module module = {.load_bias = 0x7f0000000000,
                                          .start = 0x7f0000000000,
                                          .end = 0x7f0000010000,
                                          .path = "/proc/self/comm",
                                          .last_interval = UINT64_MAX};
    const struct capture_api api = fake_capture(environment);
    struct wait_detail wait = {.kind = WAIT_LOCK, .object = address};
    const struct harvest_sample sample = waiting(SAMPLE_LOCK, 7, &wait, 1, 1);
    struct encoded_export export;
    fake.modules = &module;
    fake.module_count = 1;
    Request *const request = export_of(&api, &sample, 1, &export);
    snprintf(name, 64, "%s", text_of(request, profile_of(request, "delay"), "otelprof.lock.name"));
    release(request);
    free(export.protobuf.bytes);
}

static void a_lock_of_an_object_has_its_place_for_a_name(void **state) {
    (void)state;
    const char *const hidden[] = {"OTEL_PROFILER_TYPES=all", "OTEL_PROFILER_REDACT=comm", NULL};
    char name[64];
    name_of_lock(0x7f0000004010, everything, name);
    assert_string_equal(name, "[comm]+0x4010");
    name_of_lock(0x7f0000010000, everything, name);
    assert_string_equal(name, "");
    name_of_lock(0x7f0000004010, hidden, name);
    assert_string_equal(name, REDACTED "+0x4010");
}

/* Keeps the functions next to the lock if a holder's stack is too long: receivers refuse, or cut,
 * long values. */
static void a_holders_stack_is_bounded(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(everything);
    struct wait_detail deep = held_lock;
    deep.holder_frame_count = WAIT_HOLDER_FRAMES;
    for (int i = 0; i < WAIT_HOLDER_FRAMES; i++)
        deep.holder_frames[i] = i ? 0x3000 + (uint64_t)i : named_frame;
    const struct harvest_sample sample = waiting(SAMPLE_OFF_CPU, 7, &deep, 3e9, 0);
    struct encoded_export export;
    Request *const request = export_of(&api, &sample, 1, &export);
    const Value *const stack =
        value_of(request, profile_of(request, "off_cpu"), 0, "otelprof.lock.holder.stack");
    assert_int_equal(stack->array_value->n_values, WAIT_HOLDER_FRAMES);
    assert_string_equal(stack->array_value->values[WAIT_HOLDER_FRAMES - 1]->string_value,
                        "interpreted");
    release(request);
    free(export.protobuf.bytes);
}

/* Each thread counts for one, so no stack is the smallest. */
static void beyond_the_limit_idle_threads_go_first(void **state) {
    (void)state;
    const char *const environment[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_TYPES=all",
                                       "OTEL_PROFILER_MAX_SAMPLES=3", NULL};
    enum { COUNT = 10 };
    struct harvest_sample samples[COUNT];
    const struct capture_api api = fake_capture(environment);
    for (uint32_t i = 0; i < COUNT; i++) {
        samples[i] = waiting(SAMPLE_THREAD, 100 + i, &sleeping, 1, 0);
        samples[i].flags = i < COUNT - 2 ? SAMPLE_FLAG_IDLE : 0;
    }
    struct encoded_export export;
    Request *const request = export_of(&api, samples, COUNT, &export);
    const Profile *const profile = profile_of(request, "threads");
    assert_int_equal(profile->n_samples, 3);
    assert_int_equal(value_of(request, profile, 0, "thread.id")->int_value, 108);
    assert_int_equal(value_of(request, profile, 1, "thread.id")->int_value, 109);
    assert_int_equal(profile->samples[2]->values[0], 8);
    release(request);
    free(export.protobuf.bytes);
}

/* Adds up the profiles of that part, in requests of 2,000 bytes at most. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void add_parts(struct profile_exporter *exporter, const struct merge *merge,
                      struct export_part part, int64_t sums[static PROFILE_VALUES]) {
    struct export_part halves[2];
    const struct encoded_export export = profile_export(exporter, merge, part, 1000, 3000);
    otlp_writer_close(export.writer);
    if (export.protobuf.size > 2000) {
        free(export.protobuf.bytes);
        assert_true(export_part_divide(part, halves));
        add_parts(exporter, merge, halves[0], sums);
        add_parts(exporter, merge, halves[1], sums);
        return;
    }
    Request *const request = export.protobuf.bytes ? decode(&export) : NULL;
    for (int i = 0; request && i < PROFILE_VALUES; i++) {
        const Profile *const profile = profile_of(request, profile_values[i].type);
        for (size_t k = 0; profile && k < profile->n_samples; k++)
            sums[i] += profile->samples[k]->values[0];
    }
    if (request)
        release(request);
    free(export.protobuf.bytes);
}

static void large_exports_go_in_parts(void **state) {
    (void)state;
    enum { COUNT = 60 };
    static const enum sample_kind kinds[] = {SAMPLE_OFF_CPU, SAMPLE_SCHED_DELAY, SAMPLE_LOCK,
                                             SAMPLE_THREAD};
    struct harvest_sample samples[4 * COUNT];
    const struct capture_api api = fake_capture(everything);
    struct profile_exporter exporter = open_exporter(&api);
    struct merge merge = {.items = {0}};
    int64_t sums[PROFILE_VALUES] = {0};
    for (uint32_t i = 0; i < 4 * COUNT; i++)
        samples[i] = waiting(kinds[i % 4], 100 + i / 4, &held_lock, 1, 1000);
    fake.samples = samples;
    fake.sample_count = 4 * COUNT;
    assert_true(merge_harvest(&merge, &api));
    profile_export_begin(&exporter, &merge, true);
    add_parts(&exporter, &merge, export_part_whole(&merge), sums);
    merge_free(&merge);
    for (int i = PROFILE_OF_SAMPLE_OFF_CPU_MEASURED_NANO; i < PROFILE_VALUES; i++)
        assert_int_equal(sums[i], strcmp(profile_values[i].type, "delay") ? COUNT : 1000 * COUNT);
}

static void json_has_the_same(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(everything);
    struct profile_exporter exporter = open_exporter(&api);
    const struct harvest_sample sample = waiting(SAMPLE_THREAD, 7, &held_lock, 1, 0);
    exporter.forms = FORM_JSON;
    fake.samples = &sample;
    fake.sample_count = 1;
    const struct encoded_export export = export_once(&exporter, &api);
    const char *const parts[] = {"{\"stringValue\":\"0x7f00beef\"}", "{\"intValue\":\"4711\"}",
                                 "{\"doubleValue\":1500000000}",
                                 "{\"arrayValue\":{\"values\":[{\"stringValue\":\"[anonymous]\"},"
                                 "{\"stringValue\":\"interpreted\"}]}}"};
    assert_non_null(export.json.bytes);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_non_null(memmem(export.json.bytes, export.json.size, parts[i], strlen(parts[i])));
    free(export.json.bytes);
}

static void tables_have_the_reasons_and_leave_idle_threads_out(void **state) {
    (void)state;
    const struct capture_api api = fake_capture(everything);
    struct harvest_sample samples[] = {waiting(SAMPLE_OFF_CPU, 7, &held_lock, 3e9, 0),
                                       waiting(SAMPLE_OFF_CPU, 8, &sleeping, 1e9, 0),
                                       waiting(SAMPLE_OFF_CPU, 9, &sleeping, 4e9, 0),
                                       waiting(SAMPLE_THREAD, 9, &sleeping, 1, 0)};
    char text[CONSOLE_BYTES];
    samples[2].flags = samples[3].flags = SAMPLE_FLAG_IDLE;
    fake.samples = samples;
    fake.sample_count = 4;
    console_of(&api, text);
    assert_non_null(strstr(text, "time off CPU: 8.000 s in 1.0 s\n"));
    assert_non_null(strstr(text, " 50.0% of it is idle, "));
    assert_non_null(strstr(text, " waited for: lock 75.0%, sleep 25.0%\n"));
    assert_non_null(strstr(text, "     4.000 s 100.0%      4.000 s 100.0%  [anonymous]\n"));
    assert_non_null(strstr(text, "threads: 1 in 1.0 s\n"));
    assert_non_null(strstr(text, " 100.0% of it is idle, "));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiter_names_the_lock_and_its_holder),
        cmocka_unit_test(a_contention_has_two_values_and_no_stack_of_the_holder),
        cmocka_unit_test(a_thread_has_its_state_and_its_begin),
        cmocka_unit_test(the_awaited_object_distinguishes_samples),
        cmocka_unit_test(time_on_a_processor_is_no_wait),
        cmocka_unit_test(names_of_holders_are_redacted),
        cmocka_unit_test(a_lock_of_an_object_has_its_place_for_a_name),
        cmocka_unit_test(a_holders_stack_is_bounded),
        cmocka_unit_test(beyond_the_limit_idle_threads_go_first),
        cmocka_unit_test(large_exports_go_in_parts),
        cmocka_unit_test(json_has_the_same),
        cmocka_unit_test(tables_have_the_reasons_and_leave_idle_threads_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
