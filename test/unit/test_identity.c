/* Tests the properties that distinguish two samples, from the table of a thread to the message. */
#include "unit.h"

#include "decoded_export.h"
#include "record/sample_table.h"

/* --- the table of a thread --- */

static void see_link(void *arg, const struct sample *sample) {
    double *const values = arg;
    values[sample->context ? sample->context->span_id[0] : 0] += sample->values[0];
}

static void samples_of_two_spans_are_two(void **state) {
    (void)state;
    static struct chunk_pool pool;
    struct sample_table table = {0};
    double values[3] = {0};
    const uint64_t frames[] = {1, 2};
    for (uint32_t i = 0; i < 30; i++) {
        const struct sample_context context = {.span_id = {(uint8_t)(i % 3)}};
        const struct sample sample = {.frames = frames,
                                      .frame_count = 2,
                                      .context = i % 3 ? &context : NULL,
                                      .values = {i % 3 + 1}};
        assert_true(sample_table_add(&table, &pool, &sample));
    }
    sample_table_drain(&table, &pool, see_link, values);
    assert_true(values[0] == 10 && values[1] == 20 && values[2] == 30);
}

static void a_context_is_kept_once(void **state) {
    (void)state;
    enum { COUNT = 100 };
    static struct chunk_pool pool;
    struct sample_table table = {0};
    struct sample_context context = {.span_id = "span", .attribute_bytes = 9};
    uint32_t used = 0;
    for (uint64_t i = 0; i <= COUNT; i++) {
        const struct sample sample = {.frames = &i, .frame_count = 1, .context = &context};
        assert_true(sample_table_add(&table, &pool, &sample));
        if (i == 0)
            used = chunk_at(&pool, table.last_chunk)->used;
    }
    assert_int_equal(chunk_at(&pool, table.last_chunk)->used - used, COUNT * (56 + 8));
    context.attributes[8] = 1;
    assert_true(sample_table_add(&table, &pool, &(struct sample){.context = &context}));
    assert_int_equal(chunk_at(&pool, table.last_chunk)->used - used,
                     COUNT * (56 + 8) + 56 + 56 + 6 * 8);
}

/* Checks the size of samples in the table: links and types of frames take no further bytes. */
static void a_sample_takes_56_bytes_and_8_for_a_frame(void **state) {
    (void)state;
    enum { COUNT = 100, FRAMES = 5 };
    static struct chunk_pool pool;
    struct sample_table table = {0};
    uint32_t used = 0;
    for (uint64_t i = 0; i <= COUNT; i++) {
        const uint64_t frames[FRAMES] = {i};
        const struct sample sample = {.frames = frames, .frame_count = FRAMES};
        assert_true(sample_table_add(&table, &pool, &sample));
        if (i == 0)
            used = chunk_at(&pool, table.last_chunk)->used;
    }
    assert_int_equal(table.first_chunk, table.last_chunk);
    assert_int_equal(chunk_at(&pool, table.last_chunk)->used - used, COUNT * (56 + FRAMES * 8));
}

/* --- the message --- */

static struct capture_api start(struct harvest_sample *samples, size_t count) {
    const struct capture_api api = fake_capture(quiet);
    fake.samples = samples;
    fake.sample_count = count;
    return api;
}

/* Exports the fake's samples, and closes the exporter. Returns the request, which the caller
 * releases. */
static Request *exported(const struct capture_api *api) {
    struct profile_exporter exporter = open_exporter(api);
    const struct encoded_export export = export_once(&exporter, api);
    Request *const request = decode(&export);
    free(export.protobuf.bytes);
    symbolizer_close(exporter.symbolizer);
    resource_close((struct resource *)(uintptr_t)exporter.resource);
    return request;
}

static void a_sample_keeps_its_link(void **state) {
    (void)state;
    static const struct sample_context spans[] = {
        {.trace_id = "trace id, 16 by", .span_id = "span a,"},
        {.trace_id = "trace id, 16 by", .span_id = "span b,"},
        {.trace_id = "no span of it"}};
    static const struct {
        int64_t value;
        const char *span; /* NULL: none */
    } expected[] = {{6, "span b,"}, {5, NULL}, {3, "span a,"}, {1, NULL}};
    struct harvest_sample samples[] = {cpu(frames_a, 10000000), cpu(frames_a, 20000000),
                                       cpu(frames_a, 30000000), cpu(frames_a, 40000000),
                                       cpu(frames_b, 50000000)};
    samples[1].context = &spans[1];
    samples[2].context = &spans[0];
    samples[3].context = &spans[1];
    samples[4].context = &spans[2]; /* half an identity is none */
    const struct capture_api api = start(samples, 5);
    Request *const request = exported(&api);
    const Profile *const profile = request->resource_profiles[0]->scope_profiles[0]->profiles[0];
    assert_int_equal(profile->n_samples, 4);
    assert_int_equal(request->dictionary->n_link_table, 3);
    for (size_t i = 0; i < 4; i++) {
        const int32_t link = profile->samples[i]->link_index;
        assert_int_equal(profile->samples[i]->values[0], expected[i].value);
        assert_int_equal(link != 0, expected[i].span != NULL);
        if (!link)
            continue;
        assert_int_equal(request->dictionary->link_table[link]->trace_id.len, 16);
        assert_memory_equal(request->dictionary->link_table[link]->trace_id.data, spans[0].trace_id,
                            16);
        assert_int_equal(request->dictionary->link_table[link]->span_id.len, 8);
        assert_memory_equal(request->dictionary->link_table[link]->span_id.data, expected[i].span,
                            8);
    }
    release(request);
}

/* --- frames --- */

static void an_address_is_a_native_frame_as_it_is(void **state) {
    (void)state;
    static const uint64_t addresses[] = {0,
                                         1,
                                         0x401000,
                                         0x7fffffffffff,     /* the last address of 47 bits */
                                         0xffffffffffffff,   /* the last of 56 */
                                         0xffffffffff600000, /* vsyscall */
                                         0x8000000000000000, /* an address of no source */
                                         UINT64_MAX};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        assert_true(frame_is_address(addresses[i]));
    assert_false(frame_is_address(frame_interned(1, 0, 0)));
    assert_false(frame_is_address(frame_interned(FRAME_LAST_SOURCE, UINT32_MAX, UINT32_MAX)));
}

static void assert_location(const Request *request, int32_t number, const char *name,
                            const char *type, uint64_t address, int64_t line) {
    typedef Opentelemetry__Proto__Profiles__V1development__Location Location;
    char **const strings = request->dictionary->string_table;
    const Location *const location = request->dictionary->location_table[number];
    assert_int_equal(location->mapping_index, 0);
    assert_int_equal(location->address, address);
    assert_int_equal(location->n_lines, 1);
    assert_int_equal(location->lines[0]->line, line);
    const int32_t function = location->lines[0]->function_index;
    assert_string_equal(strings[request->dictionary->function_table[function]->name_strindex],
                        name);
    assert_int_equal(location->n_attribute_indices, 1);
    assert_string_equal(
        request->dictionary->attribute_table[location->attribute_indices[0]]->value->string_value,
        type);
}

static void an_interned_frame_is_exported_by_its_name(void **state) {
    (void)state;
    const uint64_t unknown = frame_interned(1, 0, 2);
    const uint64_t frames[] = {frame_interned(1, 7, 1), unknown, 0x2000};
    struct harvest_sample samples[] = {cpu(frames, 10000000)};
    samples[0].frame_count = 3;
    const struct capture_api api = start(samples, 1);
    Request *const request = exported(&api);
    const int32_t *const locations = request->dictionary->stack_table[1]->location_indices;
    assert_int_equal(request->dictionary->stack_table[1]->n_location_indices, 3);
    assert_location(request, locations[0], "interpreted", "cpython", 0, 17);
    assert_location(request, locations[1], "[anonymous]", "native", unknown, 0);
    assert_location(request, locations[2], "[anonymous]", "native", 0x2000, 0);
    release(request);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_of_two_spans_are_two),
        cmocka_unit_test(a_context_is_kept_once),
        cmocka_unit_test(a_sample_takes_56_bytes_and_8_for_a_frame),
        cmocka_unit_test(a_sample_keeps_its_link),
        cmocka_unit_test(an_address_is_a_native_frame_as_it_is),
        cmocka_unit_test(an_interned_frame_is_exported_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
