/* Tests OTLP's JSON: every field of every message, the edges of every type, and the reading of
 * responses.
 *
 * `test_json transcode` is no test but a tool of test_json.py: it reads protobuf and writes
 * JSON. */
#include "unit.h"

#include "export/json_reader.h"
#include "export/response.h"
#include "otlp_json.h"
#include "profiles_service.pb-c.h"

#include <float.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#define REQUEST                                                                                    \
    (&opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor)
#define RESPONSE                                                                                   \
    (&opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__descriptor)
#define PROFILES_DATA (&opentelemetry__proto__profiles__v1development__profiles_data__descriptor)

typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;
typedef Opentelemetry__Proto__Common__V1__ArrayValue ArrayValue;
typedef Opentelemetry__Proto__Profiles__V1development__Sample Sample;

/* Lists messages with one field set each: to two items if the field is a list, integers at their
 * limit, bytes to fb ff. The names in the JSON are OTLP's; the code under test has not made
 * them. */
static const struct field_case {
    const char *message;
    const char *field;
    const char *json;
} fields[] = {
    {"ExportProfilesServiceRequest", "resource_profiles", "{\"resourceProfiles\":[{},{}]}"},
    {"ExportProfilesServiceRequest", "dictionary", "{\"dictionary\":{}}"},
    {"ResourceProfiles", "resource", "{\"resource\":{}}"},
    {"ResourceProfiles", "scope_profiles", "{\"scopeProfiles\":[{},{}]}"},
    {"ResourceProfiles", "schema_url", "{\"schemaUrl\":\"text\"}"},
    {"Resource", "attributes", "{\"attributes\":[{},{}]}"},
    {"Resource", "dropped_attributes_count", "{\"droppedAttributesCount\":4294967295}"},
    {"KeyValue", "key", "{\"key\":\"text\"}"},
    {"KeyValue", "value", "{\"value\":{}}"},
    {"KeyValue", "key_strindex", "{\"keyStrindex\":-2147483648}"},
    {"AnyValue", "string_value", "{\"stringValue\":\"text\"}"},
    {"AnyValue", "bool_value", "{\"boolValue\":true}"},
    {"AnyValue", "int_value", "{\"intValue\":\"-9223372036854775808\"}"},
    {"AnyValue", "double_value", "{\"doubleValue\":0.5}"},
    {"AnyValue", "array_value", "{\"arrayValue\":{}}"},
    {"AnyValue", "kvlist_value", "{\"kvlistValue\":{}}"},
    {"AnyValue", "bytes_value", "{\"bytesValue\":\"+/8=\"}"},
    {"AnyValue", "string_value_strindex", "{\"stringValueStrindex\":-2147483648}"},
    {"ArrayValue", "values", "{\"values\":[{},{}]}"},
    {"KeyValueList", "values", "{\"values\":[{},{}]}"},
    {"ScopeProfiles", "scope", "{\"scope\":{}}"},
    {"ScopeProfiles", "profiles", "{\"profiles\":[{},{}]}"},
    {"ScopeProfiles", "schema_url", "{\"schemaUrl\":\"text\"}"},
    {"InstrumentationScope", "name", "{\"name\":\"text\"}"},
    {"InstrumentationScope", "version", "{\"version\":\"text\"}"},
    {"InstrumentationScope", "attributes", "{\"attributes\":[{},{}]}"},
    {"InstrumentationScope", "dropped_attributes_count", "{\"droppedAttributesCount\":4294967295}"},
    {"Profile", "sample_type", "{\"sampleType\":{}}"},
    {"Profile", "samples", "{\"samples\":[{},{}]}"},
    {"Profile", "time_unix_nano", "{\"timeUnixNano\":\"18446744073709551615\"}"},
    {"Profile", "duration_nano", "{\"durationNano\":\"18446744073709551615\"}"},
    {"Profile", "period_type", "{\"periodType\":{}}"},
    {"Profile", "period", "{\"period\":\"-9223372036854775808\"}"},
    {"Profile", "profile_id", "{\"profileId\":\"fbff\"}"},
    {"Profile", "dropped_attributes_count", "{\"droppedAttributesCount\":4294967295}"},
    {"Profile", "original_payload_format", "{\"originalPayloadFormat\":\"text\"}"},
    {"Profile", "original_payload", "{\"originalPayload\":\"+/8=\"}"},
    {"Profile", "attribute_indices", "{\"attributeIndices\":[-2147483648,-2147483648]}"},
    {"ValueType", "type_strindex", "{\"typeStrindex\":-2147483648}"},
    {"ValueType", "unit_strindex", "{\"unitStrindex\":-2147483648}"},
    {"Sample", "stack_index", "{\"stackIndex\":-2147483648}"},
    {"Sample", "attribute_indices", "{\"attributeIndices\":[-2147483648,-2147483648]}"},
    {"Sample", "link_index", "{\"linkIndex\":-2147483648}"},
    {"Sample", "values", "{\"values\":[\"-9223372036854775808\",\"-9223372036854775808\"]}"},
    {"Sample", "timestamps_unix_nano",
     "{\"timestampsUnixNano\":[\"18446744073709551615\",\"18446744073709551615\"]}"},
    {"ProfilesDictionary", "mapping_table", "{\"mappingTable\":[{},{}]}"},
    {"ProfilesDictionary", "location_table", "{\"locationTable\":[{},{}]}"},
    {"ProfilesDictionary", "function_table", "{\"functionTable\":[{},{}]}"},
    {"ProfilesDictionary", "link_table", "{\"linkTable\":[{},{}]}"},
    {"ProfilesDictionary", "string_table", "{\"stringTable\":[\"text\",\"text\"]}"},
    {"ProfilesDictionary", "attribute_table", "{\"attributeTable\":[{},{}]}"},
    {"ProfilesDictionary", "stack_table", "{\"stackTable\":[{},{}]}"},
    {"Mapping", "memory_start", "{\"memoryStart\":\"18446744073709551615\"}"},
    {"Mapping", "memory_limit", "{\"memoryLimit\":\"18446744073709551615\"}"},
    {"Mapping", "file_offset", "{\"fileOffset\":\"18446744073709551615\"}"},
    {"Mapping", "filename_strindex", "{\"filenameStrindex\":-2147483648}"},
    {"Mapping", "attribute_indices", "{\"attributeIndices\":[-2147483648,-2147483648]}"},
    {"Location", "mapping_index", "{\"mappingIndex\":-2147483648}"},
    {"Location", "address", "{\"address\":\"18446744073709551615\"}"},
    {"Location", "lines", "{\"lines\":[{},{}]}"},
    {"Location", "attribute_indices", "{\"attributeIndices\":[-2147483648,-2147483648]}"},
    {"Line", "function_index", "{\"functionIndex\":-2147483648}"},
    {"Line", "line", "{\"line\":\"-9223372036854775808\"}"},
    {"Line", "column", "{\"column\":\"-9223372036854775808\"}"},
    {"Function", "name_strindex", "{\"nameStrindex\":-2147483648}"},
    {"Function", "system_name_strindex", "{\"systemNameStrindex\":-2147483648}"},
    {"Function", "filename_strindex", "{\"filenameStrindex\":-2147483648}"},
    {"Function", "start_line", "{\"startLine\":\"-9223372036854775808\"}"},
    {"Link", "trace_id", "{\"traceId\":\"fbff\"}"},
    {"Link", "span_id", "{\"spanId\":\"fbff\"}"},
    {"KeyValueAndUnit", "key_strindex", "{\"keyStrindex\":-2147483648}"},
    {"KeyValueAndUnit", "value", "{\"value\":{}}"},
    {"KeyValueAndUnit", "unit_strindex", "{\"unitStrindex\":-2147483648}"},
    {"Stack", "location_indices", "{\"locationIndices\":[-2147483648,-2147483648]}"},
    {"ExportProfilesServiceResponse", "partial_success", "{\"partialSuccess\":{}}"},
    {"ExportProfilesPartialSuccess", "rejected_profiles",
     "{\"rejectedProfiles\":\"-9223372036854775808\"}"},
    {"ExportProfilesPartialSuccess", "error_message", "{\"errorMessage\":\"text\"}"},
    {"ProfilesData", "resource_profiles", "{\"resourceProfiles\":[{},{}]}"},
    {"ProfilesData", "dictionary", "{\"dictionary\":{}}"},
};

enum { FIELD_CASES = sizeof fields / sizeof *fields, MAX_MESSAGES = 64 };

/* --- a message with one field set --- */

static uint8_t two_bytes[] = {0xfb, 0xff};
static char some_text[] = "text";

static ProtobufCMessage *new_message(const ProtobufCMessageDescriptor *descriptor) {
    ProtobufCMessage *const message = calloc(1, descriptor->sizeof_message);
    protobuf_c_message_init(descriptor, message);
    return message;
}

/* Writes the field's extreme value to `at`; returns its size. */
static size_t set_value(const ProtobufCFieldDescriptor *field, void *at) {
    const int32_t i32 = INT32_MIN;
    const uint32_t u32 = UINT32_MAX;
    const int64_t i64 = INT64_MIN;
    const uint64_t u64 = UINT64_MAX;
    const double real = 0.5;
    const protobuf_c_boolean yes = 1;
    char *const text = some_text;
    const ProtobufCBinaryData data = {2, two_bytes};
    ProtobufCMessage *child;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
        memcpy(at, &i32, 4);
        return 4;
    case PROTOBUF_C_TYPE_UINT32:
        memcpy(at, &u32, 4);
        return 4;
    case PROTOBUF_C_TYPE_INT64:
        memcpy(at, &i64, 8);
        return 8;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        memcpy(at, &u64, 8);
        return 8;
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(at, &real, 8);
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        memcpy(at, &yes, sizeof yes);
        return sizeof yes;
    case PROTOBUF_C_TYPE_STRING:
        memcpy(at, &text, sizeof text);
        return sizeof text;
    case PROTOBUF_C_TYPE_BYTES:
        memcpy(at, &data, sizeof data);
        return sizeof data;
    case PROTOBUF_C_TYPE_MESSAGE:
        child = new_message(field->descriptor);
        memcpy(at, &child, sizeof child);
        return sizeof child;
    default:
        fail_msg("%s: a type that no message had when this was written", field->name);
        return 0;
    }
}

static void set_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    char *const base = (char *)message;
    const size_t two = 2;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        char *const items = calloc(2, 64);
        const size_t size = set_value(field, items);
        set_value(field, items + size);
        memcpy(base + field->quantifier_offset, &two, sizeof two);
        memcpy(base + field->offset, &items, sizeof items);
        return;
    }
    set_value(field, base + field->offset);
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        memcpy(base + field->quantifier_offset, &field->id, sizeof field->id);
}

static void assert_json(const ProtobufCMessage *message, const char *expected) {
    size_t size = 0;
    char *const json = otlp_json(message, &size);
    assert_non_null(json);
    char *const text = strndup(json, size);
    assert_int_equal(strlen(text), size);
    assert_string_equal(text, expected);
    free(text);
    free(json);
}

static const char *expected_json(const char *message, const char *field) {
    for (size_t i = 0; i < FIELD_CASES; i++)
        if (strcmp(fields[i].message, message) == 0 && strcmp(fields[i].field, field) == 0)
            return fields[i].json;
    fail_msg("%s.%s is not tested", message, field);
    return NULL;
}

/* Checks each message type that this one reaches, once. The messages live to the end of the
 * process. */
static void check_all(const ProtobufCMessageDescriptor *descriptor,
                      const ProtobufCMessageDescriptor **seen, size_t *count, size_t *checked) {
    for (size_t i = 0; i < *count; i++)
        if (seen[i] == descriptor)
            return;
    assert_true(*count < MAX_MESSAGES);
    seen[(*count)++] = descriptor;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &descriptor->fields[i];
        ProtobufCMessage *const message = new_message(descriptor);
        set_field(message, field);
        assert_json(message, expected_json(descriptor->short_name, field->name));
        (*checked)++;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            check_all(field->descriptor, seen, count, checked);
    }
    assert_json(new_message(descriptor), "{}");
}

static void every_field_of_every_message(void **state) {
    (void)state;
    const ProtobufCMessageDescriptor *seen[MAX_MESSAGES];
    size_t count = 0;
    size_t checked = 0;
    check_all(REQUEST, seen, &count, &checked);
    check_all(RESPONSE, seen, &count, &checked);
    check_all(PROFILES_DATA, seen, &count, &checked);
    assert_int_equal(checked, FIELD_CASES);
}

static void fields_are_separated(void **state) {
    (void)state;
    int64_t values[] = {INT64_MAX, 0, -1};
    int32_t attributes[] = {0, INT32_MAX};
    Sample sample = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__SAMPLE__INIT;
    sample.link_index = 1;
    sample.n_values = 3;
    sample.values = values;
    sample.n_attribute_indices = 2;
    sample.attribute_indices = attributes;
    assert_json(&sample.base, "{\"attributeIndices\":[0,2147483647],\"linkIndex\":1,"
                              "\"values\":[\"9223372036854775807\",\"0\",\"-1\"]}");
}

/* A field without presence is there as soon as it differs from the default. */
static void a_single_byte_is_said(void **state) {
    (void)state;
    uint8_t byte = 0;
    Opentelemetry__Proto__Profiles__V1development__Profile profile;
    opentelemetry__proto__profiles__v1development__profile__init(&profile);
    profile.original_payload = (ProtobufCBinaryData){1, &byte};
    assert_json(&profile.base, "{\"originalPayload\":\"AA==\"}");
}

/* --- values --- */

static void a_chosen_default_is_said(void **state) {
    (void)state;
    static const struct {
        int kind;
        const char *json;
    } cases[] = {{1, "{\"stringValue\":\"\"}"}, {2, "{\"boolValue\":false}"},
                 {3, "{\"intValue\":\"0\"}"},   {4, "{\"doubleValue\":0}"},
                 {7, "{\"bytesValue\":\"\"}"},  {8, "{\"stringValueStrindex\":0}"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AnyValue value = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
        value.value_case = cases[i].kind;
        value.bytes_value = (ProtobufCBinaryData){0};
        assert_json(&value.base, cases[i].json);
    }
}

static void assert_string(const char *text, const char *json) {
    AnyValue value = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
    char expected[512];
    char copy[256];
    snprintf(copy, sizeof copy, "%s", text);
    value.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
    value.string_value = copy;
    snprintf(expected, sizeof expected, "{\"stringValue\":\"%s\"}", json);
    assert_json(&value.base, expected);
}

static void escapes(void **state) {
    (void)state;
    assert_string("a\"b\\c/d", "a\\\"b\\\\c/d");
    assert_string("\b\f\n\r\t", "\\b\\f\\n\\r\\t");
    assert_string("\x01\x1f\x7f", "\\u0001\\u001f\\u007f");
    assert_string("operator<<(char&)", "operator<<(char&)");
    assert_string("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5",
                  "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5");
}

static void invalid_utf8_is_replaced(void **state) {
    (void)state;
    assert_string("a\xff"
                  "b",
                  "a\xef\xbf\xbd"
                  "b");
    assert_string("\xc3", "\xef\xbf\xbd");
    assert_string("\xc3\"", "\xef\xbf\xbd\\\"");
    assert_string("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd");                 /* overlong */
    assert_string("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* a surrogate */
    assert_string("\xf4\x90\x80\x80\n", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\\n");
}

static void assert_double(double number, const char *json) {
    AnyValue value = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
    char expected[128];
    value.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_DOUBLE_VALUE;
    value.double_value = number;
    snprintf(expected, sizeof expected, "{\"doubleValue\":%s}", json);
    assert_json(&value.base, expected);
}

static void doubles(void **state) {
    (void)state;
    assert_double(0.1, "0.1");
    assert_double(-2.5, "-2.5");
    assert_double(1.0 / 3, "0.3333333333333333");
    assert_double(-0.0, "-0.0");
    assert_double(1e300, "1e+300");
    assert_double(DBL_MAX, "1.7976931348623157e+308");
    assert_double(DBL_TRUE_MIN, "4.94065645841247e-324");
    assert_double((double)INT64_MAX, "9.223372036854776e+18");
    assert_double(NAN, "\"NaN\"");
    assert_double(INFINITY, "\"Infinity\"");
    assert_double(-INFINITY, "\"-Infinity\"");
}

static void base64_has_padding(void **state) {
    (void)state;
    static const char *const expected[] = {"", "AA==", "AP8=", "AP9/", "AP9/gA=="};
    uint8_t bytes[] = {0, 0xff, 0x7f, 0x80};
    for (size_t size = 0; size < sizeof expected / sizeof *expected; size++) {
        AnyValue value = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
        char json[64];
        value.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BYTES_VALUE;
        value.bytes_value = (ProtobufCBinaryData){size, bytes};
        snprintf(json, sizeof json, "{\"bytesValue\":\"%s\"}", expected[size]);
        assert_json(&value.base, json);
    }
}

/* Nests values in lists in values ..., each pair two messages deep; `in_list`: within one more
 * list. Returns true if otlp_json() writes it. */
static bool can_nest(size_t pairs, bool in_list) {
    AnyValue *const values = calloc(pairs + 1, sizeof *values);
    ArrayValue *const lists = calloc(pairs + 1, sizeof *lists);
    AnyValue **const items = calloc(pairs + 1, sizeof *items);
    size_t size;
    for (size_t i = 0; i <= pairs; i++) {
        opentelemetry__proto__common__v1__any_value__init(&values[i]);
        opentelemetry__proto__common__v1__array_value__init(&lists[i]);
        if (i == pairs)
            break;
        items[i] = &values[i + 1];
        lists[i].n_values = 1;
        lists[i].values = &items[i];
        values[i].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE;
        values[i].array_value = &lists[i];
    }
    AnyValue *first = &values[0];
    ArrayValue outer = OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
    outer.n_values = 1;
    outer.values = &first;
    char *const json = otlp_json(in_list ? &outer.base : &first->base, &size);
    free(json);
    free(values);
    free(lists);
    free(items);
    return json != NULL;
}

static void nesting_is_bounded(void **state) {
    (void)state;
    assert_true(can_nest(49, true)); /* a hundred messages */
    assert_false(can_nest(50, false));
    assert_false(can_nest(100000, false));
}

/* --- the tool --- */

static int transcode(void) {
    static uint8_t input[16 << 20];
    const size_t size = fread(input, 1, sizeof input, stdin);
    ProtobufCMessage *const message = protobuf_c_message_unpack(REQUEST, NULL, size, input);
    size_t length = 0;
    char *const json = message ? otlp_json(message, &length) : NULL;
    if (!json)
        return 1;
    const bool written = fwrite(json, 1, length, stdout) == length;
    free(json);
    protobuf_c_message_free_unpacked(message, NULL);
    return !written;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_every_message),
        cmocka_unit_test(fields_are_separated),
        cmocka_unit_test(a_single_byte_is_said),
        cmocka_unit_test(a_chosen_default_is_said),
        cmocka_unit_test(escapes),
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(doubles),
        cmocka_unit_test(base64_has_padding),
        cmocka_unit_test(nesting_is_bounded),
    };
    if (argc > 1 && strcmp(argv[1], "transcode") == 0)
        return transcode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
