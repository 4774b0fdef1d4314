#include "otlp_state.h"

#include "sample_context.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

/* Field numbers: proto/. */
enum { ANY_STRING = 1, ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4, ANY_ARRAY = 5 };
enum { ARRAY_VALUES = 1 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, ATTRIBUTE_UNIT = 3 };
enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME = 2, FUNCTION_FILE = 3, FUNCTION_START_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2 };
enum {
    MAPPING_START = 1,
    MAPPING_LIMIT = 2,
    MAPPING_FILE_OFFSET = 3,
    MAPPING_FILE = 4,
    MAPPING_ATTRIBUTES = 5
};
enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS = 2, LOCATION_LINES = 3, LOCATION_ATTRIBUTES = 4 };

/* --- tables --- */

static int32_t known(struct otlp_writer *w, struct intern *table, const void *key, size_t size) {
    bool is_new;
    const int32_t number = intern(&w->arena, table, key, size, &is_new);
    return number < 0 ? 0 : number;
}

/* Adds the item that has just been encoded. */
static int32_t listed(struct otlp_writer *w, struct intern *table) {
    if (w->item.failed)
        w->arena.failed = true;
    return w->item.failed ? 0 : known(w, table, w->item.bytes, w->item.size);
}

static struct wire *new_item(struct otlp_writer *w) {
    w->item.size = 0;
    return &w->item;
}

static bool is_valid(const char *string) {
    while (*string) {
        const size_t length = utf8_sequence(string);
        if (!length)
            return false;
        string += length;
    }
    return true;
}

/* Returns the string itself, or a copy that is UTF-8; "" without memory. */
static const char *text(struct otlp_writer *w, const char *string) {
    if (is_valid(string))
        return string;
    char *const copy = arena_copy(&w->arena, string, strlen(string));
    if (!copy)
        return "";
    utf8_make_valid(copy);
    return copy;
}

static int32_t string_index(struct otlp_writer *w, const char *string) {
    const char *const valid = text(w, string);
    return known(w, &w->strings, valid, strlen(valid));
}

/* --- attributes --- */

static void writer_put_text(struct otlp_writer *w, struct wire *wire, unsigned field,
                            const char *string) {
    const char *const valid = text(w, string);
    wire_bytes(wire, field, valid, strlen(valid));
}

static void writer_put_double(struct wire *wire, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    wire_fixed64_present(wire, ANY_DOUBLE, bits);
}

/* Begins an attribute of the table; the caller writes the value next. */
static size_t begin_attribute(struct otlp_writer *w, const char *key) {
    const int32_t number = string_index(w, key);
    struct wire *const item = new_item(w);
    wire_number(item, ATTRIBUTE_KEY, (uint64_t)number);
    return wire_begin(item, ATTRIBUTE_VALUE);
}

static int32_t end_attribute(struct otlp_writer *w, size_t begun, int32_t unit) {
    wire_end(&w->item, begun);
    wire_number(&w->item, ATTRIBUTE_UNIT, (uint64_t)unit);
    return listed(w, &w->attributes);
}

int32_t otlp_attribute_string(struct otlp_writer *w, const char *key, const char *value) {
    const size_t begun = begin_attribute(w, key);
    writer_put_text(w, &w->item, ANY_STRING, value);
    return end_attribute(w, begun, 0);
}

int32_t otlp_attribute_int(struct otlp_writer *w, const char *key, int64_t value,
                           const char *unit) {
    const size_t begun = begin_attribute(w, key);
    wire_number_present(&w->item, ANY_INT, (uint64_t)value);
    return end_attribute(w, begun, string_index(w, unit));
}

int32_t otlp_attribute_double(struct otlp_writer *w, const char *key, double value,
                              const char *unit) {
    const size_t begun = begin_attribute(w, key);
    writer_put_double(&w->item, value);
    return end_attribute(w, begun, string_index(w, unit));
}

int32_t otlp_attribute_bool(struct otlp_writer *w, const char *key, bool value) {
    const size_t begun = begin_attribute(w, key);
    wire_number_present(&w->item, ANY_BOOL, value);
    return end_attribute(w, begun, 0);
}

int32_t otlp_attribute_strings(struct otlp_writer *w, const char *key, const char *const *values,
                               size_t count) {
    const size_t begun = begin_attribute(w, key);
    const size_t array = wire_begin(&w->item, ANY_ARRAY);
    for (size_t i = 0; i < count; i++) {
        const size_t value = wire_begin(&w->item, ARRAY_VALUES);
        writer_put_text(w, &w->item, ANY_STRING, values[i]);
        wire_end(&w->item, value);
    }
    wire_end(&w->item, array);
    return end_attribute(w, begun, 0);
}

/* --- functions, mappings, locations, stacks --- */

int32_t otlp_function(struct otlp_writer *w, const char *name, const char *system_name,
                      const char *file, int64_t start_line) {
    const int32_t strings[] = {string_index(w, name), string_index(w, system_name),
                               string_index(w, file)};
    struct wire *const item = new_item(w);
    wire_number(item, FUNCTION_NAME, (uint64_t)strings[0]);
    wire_number(item, FUNCTION_SYSTEM_NAME, (uint64_t)strings[1]);
    wire_number(item, FUNCTION_FILE, (uint64_t)strings[2]);
    wire_number(item, FUNCTION_START_LINE, (uint64_t)start_line);
    return listed(w, &w->functions);
}

int32_t otlp_mapping(struct otlp_writer *w, const struct otlp_mapping *mapping) {
    const int32_t filename = string_index(w, mapping->filename);
    struct wire *const item = new_item(w);
    wire_number(item, MAPPING_START, mapping->start);
    wire_number(item, MAPPING_LIMIT, mapping->limit);
    wire_number(item, MAPPING_FILE_OFFSET, mapping->file_offset);
    wire_number(item, MAPPING_FILE, (uint64_t)filename);
    wire_packed(item, MAPPING_ATTRIBUTES, mapping->attributes, mapping->attribute_count, NULL);
    return listed(w, &w->mappings);
}

int32_t otlp_location(struct otlp_writer *w, int32_t mapping, uint64_t address,
                      const struct otlp_line *lines, size_t line_count, int32_t frame_type) {
    struct wire *const item = new_item(w);
    wire_number(item, LOCATION_MAPPING, (uint64_t)mapping);
    wire_number(item, LOCATION_ADDRESS, address);
    for (size_t i = 0; i < line_count; i++) {
        const size_t line = wire_begin(item, LOCATION_LINES);
        wire_number(item, LINE_FUNCTION, (uint64_t)lines[i].function);
        wire_number(item, LINE_LINE, (uint64_t)lines[i].line);
        wire_end(item, line);
    }
    wire_packed(item, LOCATION_ATTRIBUTES, &frame_type, 1, NULL);
    return listed(w, &w->locations);
}

int32_t otlp_stack(struct otlp_writer *w, const int32_t *locations, size_t count) {
    return known(w, &w->stacks, locations, count * sizeof *locations);
}

int32_t otlp_link(struct otlp_writer *w, const uint8_t trace_id[ID_BYTES],
                  const uint8_t span_id[SPAN_ID_BYTES]) {
    struct wire *const item = new_item(w);
    wire_bytes(item, LINK_TRACE_ID, trace_id, ID_BYTES);
    wire_bytes(item, LINK_SPAN_ID, span_id, SPAN_ID_BYTES);
    return listed(w, &w->links);
}

/* --- the resource and the scope --- */

/* Returns a copy that is UTF-8; NULL without memory. */
static char *kept_text(struct otlp_writer *w, const char *string) {
    char *const copy = arena_copy(&w->arena, string, strlen(string));
    if (copy)
        utf8_make_valid(copy);
    return copy;
}

/* Adds an attribute to the resource. */
static void resource_attribute(struct otlp_writer *w, const char *key, AnyValue value) {
    KeyValue *const pair = arena_take(&w->arena, sizeof *pair);
    AnyValue *const kept = arena_take(&w->arena, sizeof *kept);
    if (!pair || !kept)
        return;
    *kept = value;
    opentelemetry__proto__common__v1__key_value__init(pair);
    pair->key = kept_text(w, key);
    pair->value = kept;
    (void)arena_list_add(&w->arena, &w->resource, pair);
}

/* A value of a resource's attribute: ANY_VALUE(INT, int_value = 3). */
#define ANY_VALUE(kind, ...)                                                                       \
    ((AnyValue){                                                                                   \
        .base = PROTOBUF_C_MESSAGE_INIT(&opentelemetry__proto__common__v1__any_value__descriptor), \
        .value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##kind##_VALUE,           \
        .__VA_ARGS__})

void otlp_resource_string(struct otlp_writer *w, const char *key, const char *value) {
    resource_attribute(w, key, ANY_VALUE(STRING, string_value = kept_text(w, value)));
}

void otlp_resource_int(struct otlp_writer *w, const char *key, int64_t value) {
    resource_attribute(w, key, ANY_VALUE(INT, int_value = value));
}

void otlp_resource_double(struct otlp_writer *w, const char *key, double value) {
    resource_attribute(w, key, ANY_VALUE(DOUBLE, double_value = value));
}

void otlp_resource_bool(struct otlp_writer *w, const char *key, bool value) {
    resource_attribute(w, key, ANY_VALUE(BOOL, bool_value = value));
}

void otlp_schema(struct otlp_writer *w, const char *url) {
    w->schema_url = kept_text(w, url);
}

void otlp_scope(struct otlp_writer *w, const char *name, const char *version) {
    w->scope.name = kept_text(w, name);
    w->scope.version = kept_text(w, version);
}

/* --- profiles and samples --- */

static struct value_type value_type(struct otlp_writer *w, const char *type, const char *unit) {
    const int32_t number = string_index(w, type);
    return (struct value_type){number, string_index(w, unit)};
}

struct otlp_profile *otlp_profile(struct otlp_writer *w, const struct otlp_profile_type *type,
                                  const uint8_t id[ID_BYTES], uint64_t time_unix_nano,
                                  uint64_t duration_nano, size_t expected) {
    struct otlp_profile *const profile = arena_take(&w->arena, sizeof *profile);
    if (!profile || !arena_list_add(&w->arena, &w->profiles, profile))
        return NULL;
    profile->type = value_type(w, type->type, type->unit);
    profile->period_type = value_type(w, type->period_type, type->period_unit);
    profile->period = type->period;
    profile->time = time_unix_nano;
    profile->duration = duration_nano;
    memcpy(profile->id, id, ID_BYTES);
    intern_reserve(&w->arena, &profile->identities, expected);
    profile->values = arena_take(&w->arena, expected * sizeof *profile->values);
    profile->value_room = profile->values ? expected : 0;
    return profile;
}

void otlp_profile_attribute(struct otlp_writer *w, struct otlp_profile *profile,
                            int32_t attribute) {
    (void)known(w, &profile->attributes, &attribute, sizeof attribute);
}

/* Sorts the numbers, so that equal sets of attributes have equal encodings. */
static void put_in_order(int32_t *numbers, size_t count) {
    for (size_t i = 1; i < count; i++)
        for (size_t at = i; at > 0 && numbers[at - 1] > numbers[at]; at--) {
            const int32_t larger = numbers[at - 1];
            numbers[at - 1] = numbers[at];
            numbers[at] = larger;
        }
}

static bool writer_has_room(struct otlp_writer *w, struct otlp_profile *profile, size_t number) {
    if (number < profile->value_room)
        return true;
    const size_t room = profile->value_room ? 2 * profile->value_room : 64;
    int64_t *const values = arena_take(&w->arena, room * sizeof *values);
    if (!values)
        return false;
    if (profile->values)
        memcpy(values, profile->values, profile->value_room * sizeof *values);
    profile->values = values;
    profile->value_room = room;
    return true;
}

void otlp_sample(struct otlp_writer *w, struct otlp_profile *profile,
                 const struct otlp_identity *identity, int64_t value) {
    int32_t key[IDENTITY_ATTRIBUTES + OTLP_SAMPLE_ATTRIBUTES] = {identity->stack, identity->link};
    bool is_new;
    const size_t count = identity->attribute_count < OTLP_SAMPLE_ATTRIBUTES
                             ? identity->attribute_count
                             : OTLP_SAMPLE_ATTRIBUTES;
    if (count)
        memcpy(key + IDENTITY_ATTRIBUTES, identity->attributes, count * sizeof *key);
    put_in_order(key + IDENTITY_ATTRIBUTES, count);
    const int32_t number = intern(&w->arena, &profile->identities, key,
                                  (IDENTITY_ATTRIBUTES + count) * sizeof *key, &is_new);
    if (number >= 0 && writer_has_room(w, profile, (size_t)number))
        profile->values[number] += value;
}

/* --- opening and closing --- */

struct otlp_writer *otlp_writer_open(void) {
    struct otlp_writer *const w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    opentelemetry__proto__common__v1__instrumentation_scope__init(&w->scope);
    /* item 0 of each table is its zero value, whatever is listed later */
    struct intern *const tables[] = {&w->strings,   &w->attributes, &w->functions, &w->mappings,
                                     &w->locations, &w->stacks,     &w->links};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        (void)known(w, tables[i], "", 0);
    if (!w->arena.failed)
        return w;
    otlp_writer_close(w);
    return NULL;
}

void otlp_writer_close(struct otlp_writer *w) {
    if (!w)
        return;
    wire_free(&w->item);
    arena_free(&w->arena);
    free(w);
}
