/* Reads what the writer has written with the decoder that is generated from proto/: each field
 * under its own number, zeroes where they must be written, and one sample for each identity. */
#include "unit.h"

#include "otlp_writer.h"
#include "profiles_service.pb-c.h"

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    Request;
#define PROFILES(name) Opentelemetry__Proto__Profiles__V1development__##name
#define VALUE(kind)    OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##kind##_VALUE

static const struct otlp_profile_type type = {"samples", "count", "cpu", "nanoseconds", 77};
static const uint8_t id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* Packs and decodes the message, and closes the writer. Checks that protobuf-c itself would need as
 * many bytes. The caller releases the request. */
static Request *written(struct otlp_writer *writer) {
    size_t size;
    uint8_t *const bytes = otlp_writer_pack(writer, &size);
    assert_non_null(bytes);
    Request *const request =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, size, bytes);
    assert_non_null(request);
    assert_int_equal(protobuf_c_message_get_packed_size(&request->base), size);
    free(bytes);
    otlp_writer_close(writer);
    return request;
}

static void release(Request *request) {
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        request, NULL);
}

static void assert_text(const Request *request, int32_t number, const char *text) {
    assert_in_range(number, 0, request->dictionary->n_string_table - 1);
    assert_string_equal(request->dictionary->string_table[number], text);
}

static void tables_begin_with_nothing(void **state) {
    (void)state;
    Request *const request = written(otlp_writer_open());
    const PROFILES(ProfilesDictionary) *const d = request->dictionary;
    assert_int_equal(d->n_mapping_table, 1);
    assert_int_equal(d->n_location_table, 1);
    assert_int_equal(d->n_function_table, 1);
    assert_int_equal(d->n_link_table, 1);
    assert_int_equal(d->n_string_table, 1);
    assert_int_equal(d->n_attribute_table, 1);
    assert_int_equal(d->n_stack_table, 1);
    assert_int_equal(d->mapping_table[0]->memory_limit, 0);
    assert_int_equal(d->location_table[0]->n_lines, 0);
    assert_int_equal(d->function_table[0]->name_strindex, 0);
    assert_int_equal(d->link_table[0]->trace_id.len, 0);
    assert_string_equal(d->string_table[0], "");
    assert_null(d->attribute_table[0]->value);
    assert_int_equal(d->stack_table[0]->n_location_indices, 0);
    release(request);
}

/* Writes a field that can be absent even if it is zero. */
static void the_resource_and_the_scope(void **state) {
    (void)state;
    struct otlp_writer *const w = otlp_writer_open();
    for (int i = 0; i < 2; i++) {
        otlp_resource_string(w, "text", i ? "value" : "");
        otlp_resource_int(w, "int", i ? INT64_MIN : 0);
        otlp_resource_double(w, "double", i ? -0.1 : 0.0);
        otlp_resource_bool(w, "bool", i);
    }
    otlp_scope(w, "scope", "version");
    otlp_schema(w, "url");
    Request *const request = written(w);
    static const char *const keys[] = {"text", "int", "double", "bool"};
    static const int cases[] = {VALUE(STRING), VALUE(INT), VALUE(DOUBLE), VALUE(BOOL)};
    const Opentelemetry__Proto__Resource__V1__Resource *const resource =
        request->resource_profiles[0]->resource;
    assert_int_equal(resource->n_attributes, 8);
    for (size_t i = 0; i < 8; i++) {
        assert_string_equal(resource->attributes[i]->key, keys[i % 4]);
        assert_int_equal(resource->attributes[i]->value->value_case, cases[i % 4]);
    }
    assert_string_equal(resource->attributes[0]->value->string_value, "");
    assert_int_equal(resource->attributes[1]->value->int_value, 0);
    assert_true(resource->attributes[2]->value->double_value == 0);
    assert_false(resource->attributes[3]->value->bool_value);
    assert_string_equal(resource->attributes[4]->value->string_value, "value");
    assert_true(resource->attributes[5]->value->int_value == INT64_MIN);
    assert_true(resource->attributes[6]->value->double_value == -0.1);
    assert_true(resource->attributes[7]->value->bool_value);
    const Opentelemetry__Proto__Common__V1__InstrumentationScope *const scope =
        request->resource_profiles[0]->scope_profiles[0]->scope;
    assert_string_equal(scope->name, "scope");
    assert_string_equal(scope->version, "version");
    assert_string_equal(request->resource_profiles[0]->schema_url, "url");
    assert_string_equal(request->resource_profiles[0]->scope_profiles[0]->schema_url, "url");
    release(request);
}

static void each_resource_has_its_profiles(void **state) {
    (void)state;
    struct otlp_writer *const w = otlp_writer_open();
    for (uint64_t i = 1; i <= 3; i++) {
        for (uint64_t k = 0; k < i; k++)
            (void)otlp_profile(w, &type, id, 10 * i + k, 1, 1);
        otlp_resource_int(w, "number", (int64_t)i);
        otlp_next_resource(w);
    }
    Request *const request = written(w);
    assert_int_equal(request->n_resource_profiles, 3);
    for (uint64_t i = 1; i <= 3; i++) {
        const PROFILES(ResourceProfiles) *const of = request->resource_profiles[i - 1];
        assert_int_equal(of->resource->n_attributes, 1);
        assert_int_equal(of->resource->attributes[0]->value->int_value, i);
        assert_int_equal(of->scope_profiles[0]->n_profiles, i);
        for (uint64_t k = 0; k < i; k++)
            assert_int_equal(of->scope_profiles[0]->profiles[k]->time_unix_nano, 10 * i + k);
    }
    release(request);
}

static void attributes_of_the_dictionary(void **state) {
    (void)state;
    struct otlp_writer *const w = otlp_writer_open();
    assert_int_equal(otlp_attribute_string(w, "text", ""), 1);
    assert_int_equal(otlp_attribute_int(w, "int", 0, "By"), 2);
    assert_int_equal(otlp_attribute_bool(w, "bool", false), 3);
    assert_int_equal(otlp_attribute_bool(w, "bool", true), 4);
    assert_int_equal(otlp_attribute_int(w, "int", 0, "ns"), 5);
    assert_int_equal(otlp_attribute_int(w, "int", 0, "By"), 2);
    assert_int_equal(otlp_attribute_int(w, "int", -1, "By"), 6);
    Request *const request = written(w);
    static const char *const keys[] = {"text", "int", "bool", "bool", "int", "int"};
    static const char *const units[] = {"", "By", "", "", "ns", "By"};
    static const int cases[] = {VALUE(STRING), VALUE(INT), VALUE(BOOL),
                                VALUE(BOOL),   VALUE(INT), VALUE(INT)};
    PROFILES(KeyValueAndUnit) *const *const table = request->dictionary->attribute_table;
    assert_int_equal(request->dictionary->n_attribute_table, 7);
    for (size_t i = 0; i < 6; i++) {
        assert_text(request, table[i + 1]->key_strindex, keys[i]);
        assert_text(request, table[i + 1]->unit_strindex, units[i]);
        assert_int_equal(table[i + 1]->value->value_case, cases[i]);
    }
    assert_true(table[4]->value->bool_value);
    assert_int_equal(table[6]->value->int_value, -1);
    release(request);
}

static void parts_of_a_stack(void **state) {
    (void)state;
    struct otlp_writer *const w = otlp_writer_open();
    const int32_t attribute = otlp_attribute_string(w, "key", "value");
    const struct otlp_mapping mapping = {.start = 0x1000,
                                         .limit = 0x2000,
                                         .file_offset = 0x3000,
                                         .filename = "object",
                                         .attributes = &attribute,
                                         .attribute_count = 1};
    const struct otlp_line lines[] = {{otlp_function(w, "inner", "_inner", "inner.c", 4), 5},
                                      {otlp_function(w, "outer", "_outer", "outer.c", 6), 7}};
    const int32_t location =
        otlp_location(w, otlp_mapping(w, &mapping), 0x1234, lines, 2, attribute);
    assert_int_equal(otlp_stack(w, &location, 1), 1);
    Request *const request = written(w);
    const PROFILES(ProfilesDictionary) *const d = request->dictionary;
    assert_int_equal(d->mapping_table[1]->memory_start, 0x1000);
    assert_int_equal(d->mapping_table[1]->memory_limit, 0x2000);
    assert_int_equal(d->mapping_table[1]->file_offset, 0x3000);
    assert_text(request, d->mapping_table[1]->filename_strindex, "object");
    assert_int_equal(d->mapping_table[1]->n_attribute_indices, 1);
    assert_int_equal(d->mapping_table[1]->attribute_indices[0], attribute);
    assert_int_equal(d->location_table[1]->mapping_index, 1);
    assert_int_equal(d->location_table[1]->address, 0x1234);
    assert_int_equal(d->location_table[1]->n_attribute_indices, 1);
    assert_int_equal(d->location_table[1]->attribute_indices[0], attribute);
    assert_int_equal(d->location_table[1]->n_lines, 2);
    assert_int_equal(d->location_table[1]->lines[0]->line, 5);
    assert_int_equal(d->location_table[1]->lines[1]->line, 7);
    assert_int_equal(d->location_table[1]->lines[0]->column, 0);
    const PROFILES(Function) *const inner =
        d->function_table[d->location_table[1]->lines[0]->function_index];
    assert_text(request, inner->name_strindex, "inner");
    assert_text(request, inner->system_name_strindex, "_inner");
    assert_text(request, inner->filename_strindex, "inner.c");
    assert_int_equal(inner->start_line, 4);
    assert_int_equal(d->stack_table[1]->n_location_indices, 1);
    assert_int_equal(d->stack_table[1]->location_indices[0], 1);
    release(request);
}

static void one_sample_for_each_identity(void **state) {
    (void)state;
    struct otlp_writer *const w = otlp_writer_open();
    struct otlp_profile *const profile = otlp_profile(w, &type, id, 11, 22, 0);
    const int32_t attribute = otlp_attribute_string(w, "key", "value");
    const int32_t several[] = {3, 1, 2};
    const int32_t in_another_order[] = {2, 3, 1};
    otlp_profile_attribute(w, profile, attribute);
    otlp_profile_attribute(w, profile, attribute);
    const int32_t link = otlp_link(w, id, id + 8);
    assert_int_equal(link, otlp_link(w, id, id + 8));
    otlp_sample(w, profile, &(struct otlp_identity){5, 0, several, 3}, 10);
    otlp_sample(w, profile, &(struct otlp_identity){5, 0, several, 2}, 100);
    otlp_sample(w, profile, &(struct otlp_identity){5, 0, in_another_order, 3}, 1);
    otlp_sample(w, profile, &(struct otlp_identity){5, link, several, 3}, 1000);
    otlp_sample(w, profile, &(struct otlp_identity){0}, 0);
    Request *const request = written(w);
    const PROFILES(Profile) *const p =
        request->resource_profiles[0]->scope_profiles[0]->profiles[0];
    assert_text(request, p->sample_type->type_strindex, "samples");
    assert_text(request, p->sample_type->unit_strindex, "count");
    assert_text(request, p->period_type->type_strindex, "cpu");
    assert_text(request, p->period_type->unit_strindex, "nanoseconds");
    assert_int_equal(p->period, 77);
    assert_int_equal(p->time_unix_nano, 11);
    assert_int_equal(p->duration_nano, 22);
    assert_int_equal(p->profile_id.len, sizeof id);
    assert_memory_equal(p->profile_id.data, id, sizeof id);
    assert_int_equal(p->n_attribute_indices, 1);
    assert_int_equal(p->attribute_indices[0], attribute);
    static const struct {
        int32_t stack;
        int32_t link;
        size_t attributes;
        int64_t value;
    } expected[] = {{5, 0, 3, 11}, {5, 0, 2, 100}, {5, 1, 3, 1000}, {0, 0, 0, 0}};
    assert_int_equal(p->n_samples, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(p->samples[i]->link_index, expected[i].link);
        assert_int_equal(p->samples[i]->stack_index, expected[i].stack);
        assert_int_equal(p->samples[i]->n_attribute_indices, expected[i].attributes);
        assert_int_equal(p->samples[i]->n_values, 1);
        assert_int_equal(p->samples[i]->values[0], expected[i].value);
    }
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(p->samples[0]->attribute_indices[i], i + 1);
    assert_int_equal(request->dictionary->n_link_table, 2);
    const PROFILES(Link) *const linked = request->dictionary->link_table[1];
    assert_int_equal(linked->trace_id.len, 16);
    assert_memory_equal(linked->trace_id.data, id, 16);
    assert_int_equal(linked->span_id.len, 8);
    assert_memory_equal(linked->span_id.data, id + 8, 8);
    release(request);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_begin_with_nothing),
        cmocka_unit_test(the_resource_and_the_scope),
        cmocka_unit_test(each_resource_has_its_profiles),
        cmocka_unit_test(attributes_of_the_dictionary),
        cmocka_unit_test(parts_of_a_stack),
        cmocka_unit_test(one_sample_for_each_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
