#include "otlp_state.h"

#include "utf8.h"

#include <stdlib.h>
#include <string.h>

/* --- tables --- */

static int32_t known(struct otlp_writer *w, struct intern *table, const void *key, size_t size) {
    bool is_new;
    const int32_t number = intern(&w->arena, table, key, size, &is_new);
    return number < 0 ? 0 : number;
}

/* Begins an item whose length varies; the caller appends the rest to w->item. */
static void otlp_begin_item(struct otlp_writer *w, const void *head, size_t size) {
    w->item.size = 0;
    wire_raw(&w->item, head, size);
}

static int32_t end_item(struct otlp_writer *w, struct intern *table) {
    if (w->item.failed)
        w->arena.failed = true;
    return w->item.failed ? 0 : known(w, table, w->item.bytes, w->item.size);
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
static const char *otlp_valid_text(struct otlp_writer *w, const char *string) {
    if (is_valid(string))
        return string;
    char *const copy = arena_copy(&w->arena, string, strlen(string));
    if (!copy)
        return "";
    utf8_make_valid(copy);
    return copy;
}

static int32_t string_index(struct otlp_writer *w, const char *string) {
    const char *const valid = otlp_valid_text(w, string);
    return known(w, &w->strings, valid, strlen(valid));
}

/* --- attributes --- */

static int32_t list_attribute(struct otlp_writer *w, struct listed_attribute *attribute,
                              const char *key, const char *unit, const char *string) {
    attribute->key = string_index(w, key);
    attribute->unit = string_index(w, unit);
    otlp_begin_item(w, attribute, LISTED_ATTRIBUTE_BYTES);
    wire_raw(&w->item, string, strlen(string));
    return end_item(w, &w->attributes);
}

int32_t otlp_attribute_string(struct otlp_writer *w, const char *key, const char *value) {
    return list_attribute(w, &(struct listed_attribute){.form = ANY_STRING}, key, "",
                          otlp_valid_text(w, value));
}

int32_t otlp_attribute_int(struct otlp_writer *w, const char *key, int64_t value,
                           const char *unit) {
    return list_attribute(w, &(struct listed_attribute){value, .form = ANY_INT}, key, unit, "");
}

int32_t otlp_attribute_double(struct otlp_writer *w, const char *key, double value,
                              const char *unit) {
    struct listed_attribute attribute = {.form = ANY_DOUBLE};
    memcpy(&attribute.number, &value, sizeof value);
    return list_attribute(w, &attribute, key, unit, "");
}

int32_t otlp_attribute_bool(struct otlp_writer *w, const char *key, bool value) {
    return list_attribute(w, &(struct listed_attribute){value, .form = ANY_BOOL}, key, "", "");
}

int32_t otlp_attribute_strings(struct otlp_writer *w, const char *key, const char *const *values,
                               size_t count) {
    const struct listed_attribute attribute = {.key = string_index(w, key), .form = ANY_ARRAY};
    otlp_begin_item(w, &attribute, LISTED_ATTRIBUTE_BYTES);
    for (size_t i = 0; i < count; i++) {
        const char *const valid = otlp_valid_text(w, values[i]);
        wire_raw(&w->item, valid, strlen(valid) + 1);
    }
    return end_item(w, &w->attributes);
}

/* --- functions, mappings, locations, stacks --- */

int32_t otlp_function(struct otlp_writer *w, const char *name, const char *system_name,
                      const char *file, int32_t start_line) {
    struct listed_function function = {.start_line = start_line};
    function.name = string_index(w, name);
    function.system_name = string_index(w, system_name);
    function.file = string_index(w, file);
    return known(w, &w->functions, &function, sizeof function);
}

int32_t otlp_mapping(struct otlp_writer *w, const struct otlp_mapping *mapping) {
    const struct listed_mapping head = {mapping->start, mapping->limit, mapping->file_offset,
                                        string_index(w, mapping->filename)};
    otlp_begin_item(w, &head, LISTED_MAPPING_BYTES);
    wire_raw(&w->item, mapping->attributes, mapping->attribute_count * sizeof *mapping->attributes);
    return end_item(w, &w->mappings);
}

int32_t otlp_location(struct otlp_writer *w, int32_t mapping, uint64_t address,
                      const struct otlp_line *lines, size_t line_count, int32_t frame_type) {
    const struct listed_location head = {address, mapping, frame_type};
    otlp_begin_item(w, &head, sizeof head);
    wire_raw(&w->item, lines, line_count * sizeof *lines);
    return end_item(w, &w->locations);
}

int32_t otlp_stack(struct otlp_writer *w, const int32_t *locations, size_t count) {
    return known(w, &w->stacks, locations, count * sizeof *locations);
}

int32_t otlp_link(struct otlp_writer *w, const uint8_t trace_id[ID_BYTES],
                  const uint8_t span_id[SPAN_ID_BYTES]) {
    struct listed_link link;
    memcpy(link.trace_id, trace_id, sizeof link.trace_id);
    memcpy(link.span_id, span_id, sizeof link.span_id);
    return known(w, &w->links, &link, sizeof link);
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

/* Makes the value of a resource's attribute, for example ANY_VALUE(INT, int_value = 3). */
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

void otlp_next_resource(struct otlp_writer *w) {
    struct ended_resource *const ended = arena_take(&w->arena, sizeof *ended);
    if (!ended)
        return;
    *ended = (struct ended_resource){w->resource, w->profiles.count};
    w->resource = (struct arena_list){0};
    (void)arena_list_add(&w->arena, &w->earlier, ended);
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
    /* item 0 of each table is its zero value */
    static const uint64_t zero[4];
    const struct {
        struct intern *table;
        size_t size;
    } items[] = {{&w->strings, 0},
                 {&w->attributes, LISTED_ATTRIBUTE_BYTES},
                 {&w->functions, sizeof(struct listed_function)},
                 {&w->mappings, LISTED_MAPPING_BYTES},
                 {&w->locations, sizeof(struct listed_location)},
                 {&w->stacks, 0},
                 {&w->links, sizeof(struct listed_link)}};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        (void)known(w, items[i].table, zero, items[i].size);
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
