/* Tests how an export shows threads' contexts: as a link and labels. No entry is listed twice, no
 * hidden text is found elsewhere, and no unused entry is left in the dictionary. */
#include "unit.h"

#include "console_text.h"
#include "decoded_export.h"
#include "encode/contexts.h"
#include "written_context.h"

static const char trace[] = "trace id, 16 by";

static struct key_names names;

/* Holds the labels of one context until the next call of name_one(). */
static struct merge named;

static const struct exported_context *name_one(const struct sample_context *context,
                                               const char *const *environment, uint64_t *left_out) {
    const struct capture_api api = fake_capture(environment);
    struct harvest_sample sample = cpu(frames_a, 10000000);
    sample.context = context;
    fake.samples = &sample;
    fake.sample_count = 1;
    merge_free(&named);
    assert_true(merge_harvest(&named, &api));
    const uint64_t count = contexts_name(&named, &names, api.config);
    if (left_out)
        *left_out = count;
    const struct exported_context *const exported = context_of_item(&named, 0);
    assert_non_null(exported);
    return exported;
}

static const char *label_of(const struct exported_context *exported, const char *key) {
    const char *value = NULL;
    for (uint32_t i = 0; i < exported->label_count; i++)
        if (strcmp(exported->labels[i].key, key) == 0) {
            assert_null(value);
            value = exported->labels[i].value;
        }
    return value;
}

/* --- names --- */

static void keys_by_name_need_no_lookup(void **state) {
    (void)state;
    struct sample_context context = {.attribute_bytes = 0};
    put_named(&context, "http.route", "/pay");
    put_named(&context, "tenant", "");
    uint64_t left_out;
    const struct exported_context *const exported = name_one(&context, quiet, &left_out);
    assert_null(exported->span);
    assert_int_equal(exported->label_count, 2);
    assert_string_equal(label_of(exported, "http.route"), "/pay");
    assert_string_equal(label_of(exported, "tenant"), "");
    assert_int_equal(left_out, 0);
}

static void keys_by_index_are_looked_up(void **state) {
    (void)state;
    struct sample_context context = {.attribute_bytes = 0};
    put_indexed(&context, 0, "first");
    put_indexed(&context, 255, "last");
    put_indexed(&context, 7, "nobody knows it");
    names.of[0] = strdup("zero");
    names.of[255] = strdup("end");
    uint64_t left_out;
    const struct exported_context *const exported = name_one(&context, quiet, &left_out);
    assert_int_equal(exported->label_count, 2);
    assert_string_equal(label_of(exported, "zero"), "first");
    assert_string_equal(label_of(exported, "end"), "last");
    assert_int_equal(left_out, 1);
    assert_true(contexts_lack_names(&named, &names));
    names.of[7] = strdup("seven");
    assert_false(contexts_lack_names(&named, &names));
    key_names_clear(&names);
}

static void invalid_keys_are_left_out_and_counted(void **state) {
    (void)state;
    struct sample_context context = {.attribute_bytes = 0};
    put_named(&context, "a\nb", "v");
    put_named(&context, "\xff", "v");
    put_entry(&context, (const uint8_t *)"a\0b", 3, 0, "v", 1);
    put_named(&context, "good", "v");
    uint64_t left_out;
    const struct exported_context *const exported = name_one(&context, quiet, &left_out);
    assert_int_equal(exported->label_count, 1);
    assert_string_equal(label_of(exported, "good"), "v");
    assert_int_equal(left_out, 3);
}

static void a_key_of_ours_is_not_taken(void **state) {
    (void)state;
    static const char *const ours[] = {"thread.id", "thread_id", "thread.name",
                                       "otelprof.stack.truncated", "otelprof_x"};
    struct sample_context context = {.attribute_bytes = 0};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        put_named(&context, ours[i], "theirs");
    put_named(&context, "thread.idle", "yes");
    uint64_t left_out;
    const struct exported_context *const exported = name_one(&context, quiet, &left_out);
    assert_int_equal(exported->label_count, 1);
    assert_string_equal(label_of(exported, "thread.idle"), "yes");
    assert_int_equal(left_out, sizeof ours / sizeof *ours);
}

static void of_two_of_one_key_the_last_wins(void **state) {
    (void)state;
    struct sample_context context = {.attribute_bytes = 0};
    put_named(&context, "db.name", "a");
    put_named(&context, "db_name", "b");
    put_indexed(&context, 3, "c");
    names.of[3] = strdup("db.name");
    const struct exported_context *const exported = name_one(&context, quiet, NULL);
    assert_int_equal(exported->label_count, 1);
    assert_string_equal(label_of(exported, "db.name"), "c");
    key_names_clear(&names);
}

static void a_value_becomes_text(void **state) {
    (void)state;
    struct sample_context context = {.attribute_bytes = 0};
    put_entry(&context, (const uint8_t *)"nul", 3, 0, "a\0b", 3);
    put_named(&context, "cut", "\xe2\x82");
    put_named(&context, "lines", "select\n*");
    const struct exported_context *const exported = name_one(&context, quiet, NULL);
    assert_string_equal(label_of(exported, "nul"), "a?b");
    assert_string_equal(label_of(exported, "cut"), "??");
    assert_string_equal(label_of(exported, "lines"), "select\n*");
}

static void a_label_is_hidden_by_its_key_or_its_value(void **state) {
    (void)state;
    static const char *const hiding[] = {"OTEL_PROFILER_SYMBOLS=none",
                                         "OTEL_PROFILER_REDACT=user.*,*secret*",
                                         "OTEL_PROFILER_LINK_ATTRIBUTES=true", NULL};
    struct sample_context context = span_context(trace, "secret ");
    put_named(&context, "user.email", "a@b.c");
    put_named(&context, "token", "top secret");
    put_named(&context, "user.none", "");
    put_named(&context, "route", "/pay");
    const struct exported_context *const exported = name_one(&context, hiding, NULL);
    assert_string_equal(label_of(exported, "user.email"), "[REDACTED]");
    assert_string_equal(label_of(exported, "token"), "[REDACTED]");
    assert_string_equal(label_of(exported, "user.none"), "");
    assert_string_equal(label_of(exported, "route"), "/pay");
    assert_string_equal(label_of(exported, "span_id"), "7365637265742000");
}

static void labels_are_sent_by_choice(void **state) {
    (void)state;
    static const char *const chosen[] = {"OTEL_PROFILER_SYMBOLS=none",
                                         "OTEL_PROFILER_LABELS=http.*, zero", NULL};
    struct sample_context context = span_context(trace, "span a,");
    put_named(&context, "http.route", "/pay");
    put_named(&context, "user-id", "7");
    put_named(&context, "thread.name", "theirs");
    put_indexed(&context, 0, "by index");
    put_indexed(&context, 1, "other");
    names.of[0] = strdup("zero");
    names.of[1] = strdup("one");
    uint64_t left_out;
    const struct exported_context *const exported = name_one(&context, chosen, &left_out);
    assert_int_equal(exported->label_count, 2);
    assert_string_equal(label_of(exported, "http.route"), "/pay");
    assert_string_equal(label_of(exported, "zero"), "by index");
    assert_non_null(exported->span);
    assert_int_equal(left_out, 0);
    key_names_clear(&names);
}

static void without_labels_spans_stay_linked(void **state) {
    (void)state;
    static const char *const none[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_LABELS=none",
                                       "OTEL_PROFILER_LINK_ATTRIBUTES=true", NULL};
    struct sample_context context = span_context(trace, "span a,");
    put_named(&context, "route", "/pay");
    put_indexed(&context, 9, "nobody knows it");
    uint64_t left_out;
    const struct exported_context *const exported = name_one(&context, none, &left_out);
    assert_non_null(exported->span);
    assert_int_equal(exported->label_count, 2);
    assert_non_null(label_of(exported, "span_id"));
    assert_int_equal(left_out, 0);
}

static void the_ids_are_attributes_on_request(void **state) {
    (void)state;
    static const char *const asked[] = {"OTEL_PROFILER_SYMBOLS=none",
                                        "OTEL_PROFILER_LINK_ATTRIBUTES=true", NULL};
    struct sample_context context = span_context(trace, "\x01\xab\0\0\0\0\0");
    put_named(&context, "trace.id", "theirs");
    const struct exported_context *exported = name_one(&context, asked, NULL);
    assert_int_equal(exported->label_count, 2);
    assert_string_equal(label_of(exported, "trace_id"), "74726163652069642c20313620627900");
    assert_string_equal(label_of(exported, "span_id"), "01ab000000000000");
    exported = name_one(&context, quiet, NULL);
    assert_int_equal(exported->label_count, 0);
    const struct sample_context no_span = {.attribute_bytes = 0};
    assert_int_equal(name_one(&no_span, asked, NULL)->label_count, 0);
}

static void a_label_names_no_other_span_than_the_link(void **state) {
    (void)state;
    uint64_t left_out;
    struct sample_context context = span_context(trace, "span a,");
    put_named(&context, "span.id", "theirs");
    put_named(&context, "trace_id", "theirs");
    assert_int_equal(name_one(&context, quiet, &left_out)->label_count, 0);
    assert_int_equal(left_out, 2);
    struct sample_context labels_alone = {.attribute_bytes = 0};
    put_named(&labels_alone, "trace_id", "theirs");
    assert_string_equal(label_of(name_one(&labels_alone, quiet, NULL), "trace_id"), "theirs");
}

/* --- the message --- */

static Request *request_of(const struct capture_api *api, const struct harvest_sample *samples,
                           size_t count) {
    struct profile_exporter exporter = open_exporter(api);
    fake.samples = samples;
    fake.sample_count = count;
    const struct encoded_export export = export_once(&exporter, api);
    Request *const request = decode(&export);
    free(export.protobuf.bytes);
    symbolizer_close(exporter.symbolizer);
    resource_close((struct resource *)(uintptr_t)exporter.resource);
    return request;
}

static const Profile *first_profile(const Request *request) {
    return request->resource_profiles[0]->scope_profiles[0]->profiles[0];
}

/* Returns the value of a sample's attribute, "" where the sample has none. */
static const char *attribute_of(const Request *request, size_t sample, const char *key) {
    const Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary *const d =
        request->dictionary;
    const Opentelemetry__Proto__Profiles__V1development__Sample *const of =
        first_profile(request)->samples[sample];
    for (size_t i = 0; i < of->n_attribute_indices; i++) {
        const Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit *const attribute =
            d->attribute_table[of->attribute_indices[i]];
        if (strcmp(d->string_table[attribute->key_strindex], key) == 0)
            return attribute->value->string_value;
    }
    return "";
}

static void labels_become_attributes_of_the_sample(void **state) {
    (void)state;
    struct sample_context context = span_context(trace, "span a,");
    put_named(&context, "route", "/pay");
    put_named(&context, "thread.name", "theirs");
    struct harvest_sample samples[] = {cpu(frames_a, 20000000), cpu(frames_a, 10000000)};
    samples[0].context = &context;
    const struct capture_api api = fake_capture(quiet);
    Request *const request = request_of(&api, samples, 2);
    assert_int_equal(first_profile(request)->n_samples, 2);
    assert_int_equal(first_profile(request)->samples[0]->n_attribute_indices, 3);
    assert_string_equal(attribute_of(request, 0, "route"), "/pay");
    assert_string_equal(attribute_of(request, 0, "thread.name"), "worker");
    assert_string_equal(attribute_of(request, 1, "route"), "");
    assert_int_equal(first_profile(request)->samples[0]->link_index, 1);
    assert_int_equal(first_profile(request)->samples[1]->link_index, 0);
    assert_int_equal(fake.dropped[DROP_CONTEXT_KEY], 1);
    release(request);
}

/* Merges such samples: a receiver may require one sample for a stack, a link and a set of
 * attributes. */
static void contexts_that_differ_in_nothing_exported_are_one_sample(void **state) {
    (void)state;
    static const char *const hiding[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_REDACT=user",
                                         NULL};
    enum { COUNT = 4 };
    struct sample_context contexts[COUNT];
    struct harvest_sample samples[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        const char value[] = {(char)('a' + i), 0};
        contexts[i] = span_context(trace, "span a,");
        put_indexed(&contexts[i], 9, value);
        put_named(&contexts[i], "thread_id", value);
        put_named(&contexts[i], "user", value);
        samples[i] = cpu(frames_a, 10000000);
        samples[i].context = &contexts[i];
    }
    const struct capture_api api = fake_capture(hiding);
    Request *const request = request_of(&api, samples, COUNT);
    assert_int_equal(first_profile(request)->n_samples, 1);
    assert_int_equal(first_profile(request)->samples[0]->values[0], COUNT);
    assert_string_equal(attribute_of(request, 0, "user"), "[REDACTED]");
    release(request);
}

/* Labels that are not sent use up no places of OTEL_PROFILER_MAX_SAMPLES. */
static void labels_that_are_not_sent_divide_no_samples(void **state) {
    (void)state;
    static const char *const choices[][4] = {
        {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_MAX_SAMPLES=3", "OTEL_PROFILER_LABELS=route"},
        {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_MAX_SAMPLES=3", "OTEL_PROFILER_LABELS=none"},
        {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_MAX_SAMPLES=3", "OTEL_PROFILER_REDACT=user"},
    };
    enum { COUNT = 100 };
    static struct sample_context contexts[COUNT];
    struct harvest_sample samples[COUNT + 1];
    for (uint32_t i = 0; i < COUNT; i++) {
        char user[16];
        snprintf(user, sizeof user, "%u", i);
        contexts[i] = span_context(trace, i % 2 ? "span a," : "span b,");
        put_named(&contexts[i], "user", user);
        put_named(&contexts[i], "route", "/pay");
        samples[i] = cpu(frames_a, 10000000);
        samples[i].context = &contexts[i];
    }
    samples[COUNT] = cpu(frames_a, 10000000);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const struct capture_api api = fake_capture(choices[i]);
        Request *const request = request_of(&api, samples, COUNT + 1);
        const Profile *const profile = first_profile(request);
        assert_int_equal(profile->n_samples, 3);
        assert_int_equal(profile->samples[0]->values[0], COUNT / 2);
        assert_int_equal(profile->samples[1]->values[0], COUNT / 2);
        assert_int_equal(profile->samples[2]->values[0], 1);
        assert_string_equal(attribute_of(request, 0, "route"), i == 1 ? "" : "/pay");
        assert_int_equal(request->dictionary->n_link_table, 3);
        release(request);
    }
}

static void a_context_of_which_nothing_is_sent_is_none(void **state) {
    (void)state;
    static const char *const none[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_LABELS=none",
                                       "OTEL_PROFILER_MAX_SAMPLES=1", NULL};
    struct sample_context context = {.attribute_bytes = 0};
    put_named(&context, "user", "a");
    struct harvest_sample samples[] = {cpu(frames_a, 20000000), cpu(frames_a, 10000000)};
    samples[0].context = &context;
    const struct capture_api api = fake_capture(none);
    Request *const request = request_of(&api, samples, 2);
    assert_int_equal(first_profile(request)->n_samples, 1);
    assert_int_equal(first_profile(request)->samples[0]->values[0], 3);
    assert_string_equal(attribute_of(request, 0, "thread.name"), "worker");
    release(request);
}

static void as_many_labels_as_there_can_be_fit(void **state) {
    (void)state;
    static const char *const asked[] = {"OTEL_PROFILER_SYMBOLS=none",
                                        "OTEL_PROFILER_LINK_ATTRIBUTES=true", NULL};
    struct sample_context context = span_context(trace, "span a,");
    struct harvest_sample sample = cpu(frames_a, 10000000);
    for (int i = 0; i < CONTEXT_ATTRIBUTES; i++) {
        const char key[] = {(char)('a' + i), 0};
        put_named(&context, key, key);
    }
    sample.flags = SAMPLE_FLAG_TRUNCATED | SAMPLE_FLAG_DEPTH_CUT | SAMPLE_FLAG_UNSAMPLED;
    sample.context = &context;
    const struct capture_api api = fake_capture(asked);
    Request *const request = request_of(&api, &sample, 1);
    assert_int_equal(first_profile(request)->samples[0]->n_attribute_indices,
                     5 + CONTEXT_ATTRIBUTES + 2);
    release(request);
}

/* --- many spans --- */

enum { SPANS = 3000 };
static struct sample_context spans[SPANS];
static struct harvest_sample of_spans[SPANS];

static void make_spans(void) {
    for (uint32_t i = 0; i < SPANS; i++) {
        char user[32];
        spans[i] = span_context(trace, "span a,");
        memcpy(spans[i].span_id, &i, sizeof i);
        snprintf(user, sizeof user, "user %u", i);
        put_named(&spans[i], "user", user);
        of_spans[i] = cpu(frames_a, 10000000 * (uint64_t)(1 + i % 100));
        of_spans[i].context = &spans[i];
    }
}

static void contexts_merged_into_other_leave_no_orphans(void **state) {
    (void)state;
    static const char *const few[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_MAX_SAMPLES=100",
                                      NULL};
    make_spans();
    const struct capture_api api = fake_capture(few);
    Request *const request = request_of(&api, of_spans, SPANS);
    assert_int_equal(first_profile(request)->n_samples, 100);
    assert_int_equal(request->dictionary->n_link_table, 1 + 99);
    /* thread.id, thread.name, the users, a frame's type, the profiler's own CPU time */
    assert_int_equal(request->dictionary->n_attribute_table, 1 + 2 + 99 + 1 + 1);
    int64_t total = 0;
    for (size_t i = 0; i < 100; i++)
        total += first_profile(request)->samples[i]->values[0];
    assert_int_equal(total, SPANS / 100 * 5050);
    release(request);
}

/* Lists in each half the links and labels of its own samples, and no others. */
static void a_divided_interval_leaves_no_orphans(void **state) {
    (void)state;
    make_spans();
    const struct capture_api api = fake_capture(quiet);
    struct profile_exporter exporter = open_exporter(&api);
    struct merge merge = {.items = {0}};
    struct export_part halves[2];
    fake.samples = of_spans;
    fake.sample_count = SPANS;
    assert_true(merge_harvest(&merge, &api));
    profile_export_begin(&exporter, &merge, true);
    struct export_part part = export_part_whole(&merge);
    part.profiles = 1;
    assert_true(export_part_divide(part, halves));
    size_t links = 0;
    for (int half = 0; half < 2; half++) {
        const struct encoded_export export =
            profile_export(&exporter, &merge, halves[half], 1000, 3000);
        otlp_writer_close(export.writer);
        Request *const request = decode(&export);
        assert_int_equal(request->dictionary->n_link_table, 1 + first_profile(request)->n_samples);
        links += request->dictionary->n_link_table - 1;
        release(request);
        free(export.protobuf.bytes);
    }
    assert_int_equal(links, SPANS);
    merge_free(&merge);
}

/* --- the console --- */

static const char *const console[] = {"OTEL_PROFILER_SYMBOLS=none", NULL};

static void expect(const struct harvest_sample *samples, size_t count, const char *said) {
    char text[CONSOLE_BYTES];
    const struct capture_api api = fake_capture(console);
    fake.samples = samples;
    fake.sample_count = count;
    console_of(&api, text);
    assert_non_null(strstr(text, "CPU time: 0.080 s in 1.0 s\n"));
    if (said)
        assert_non_null(strstr(text, said));
    else
        assert_null(strstr(text, "span"));
}

static void the_share_of_spans_is_reported(void **state) {
    (void)state;
    struct sample_context contexts[] = {span_context("trace id, 16 by", "span a,"),
                                        span_context("trace id, 16 by", "span b,"),
                                        span_context("trace id, 16 by", "span a,"),
                                        {.attribute_bytes = 0}};
    struct harvest_sample samples[] = {cpu(frames_a, 10000000), cpu(frames_a, 20000000),
                                       cpu(frames_b, 20000000), cpu(frames_b, 30000000)};
    put_named(&contexts[2], "label", "that makes no other span of it");
    for (size_t i = 0; i < 4; i++)
        samples[i].context = &contexts[i];
    expect(samples, 4, "] 62.5% of it belongs to 2 spans\n");
    samples[1].context = samples[3].context = NULL;
    expect(samples, 4, "] 37.5% of it belongs to 1 span\n");
}

static void where_there_are_no_spans_nothing_is_said_of_them(void **state) {
    (void)state;
    struct sample_context label = {.attribute_bytes = 0};
    struct harvest_sample samples[] = {cpu(frames_a, 30000000), cpu(frames_b, 50000000)};
    put_named(&label, "route", "/pay");
    samples[0].context = &label;
    expect(samples, 2, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_by_name_need_no_lookup),
        cmocka_unit_test(keys_by_index_are_looked_up),
        cmocka_unit_test(invalid_keys_are_left_out_and_counted),
        cmocka_unit_test(a_key_of_ours_is_not_taken),
        cmocka_unit_test(of_two_of_one_key_the_last_wins),
        cmocka_unit_test(a_value_becomes_text),
        cmocka_unit_test(a_label_is_hidden_by_its_key_or_its_value),
        cmocka_unit_test(without_labels_spans_stay_linked),
        cmocka_unit_test(labels_are_sent_by_choice),
        cmocka_unit_test(the_ids_are_attributes_on_request),
        cmocka_unit_test(a_label_names_no_other_span_than_the_link),
        cmocka_unit_test(labels_become_attributes_of_the_sample),
        cmocka_unit_test(contexts_that_differ_in_nothing_exported_are_one_sample),
        cmocka_unit_test(a_context_of_which_nothing_is_sent_is_none),
        cmocka_unit_test(labels_that_are_not_sent_divide_no_samples),
        cmocka_unit_test(as_many_labels_as_there_can_be_fit),
        cmocka_unit_test(contexts_merged_into_other_leave_no_orphans),
        cmocka_unit_test(a_divided_interval_leaves_no_orphans),
        cmocka_unit_test(the_share_of_spans_is_reported),
        cmocka_unit_test(where_there_are_no_spans_nothing_is_said_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
