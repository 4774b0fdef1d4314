#include "otlp_writer.h"

#include "arena.h"
#include "intern.h"
#include "otlp_json.h"
#include "profiles_service.pb-c.h"
#include "utf8.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#define SERVICE(name) opentelemetry__proto__collector__profiles__v1development__##name

enum { MAX_SAMPLE_ATTRIBUTES = 8, ID_BYTES = 16, SPAN_ID_BYTES = 8 };

/* Field numbers: proto/. */
enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };
enum {
    RESOURCE_PROFILES_RESOURCE = 1,
    RESOURCE_PROFILES_SCOPE_PROFILES = 2,
    RESOURCE_PROFILES_SCHEMA_URL = 3
};
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES = 2, SCOPE_PROFILES_SCHEMA_URL = 3 };
enum { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_STRING = 1, ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4 };
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, ATTRIBUTE_UNIT = 3 };
enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME = 2, FUNCTION_FILE = 3, FUNCTION_START_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { STACK_LOCATIONS = 1 };
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES = 2, SAMPLE_LINK = 3, SAMPLE_VALUES = 4 };
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2 };
enum {
    MAPPING_START = 1,
    MAPPING_LIMIT = 2,
    MAPPING_FILE_OFFSET = 3,
    MAPPING_FILE = 4,
    MAPPING_ATTRIBUTES = 5
};
enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS = 2, LOCATION_LINES = 3, LOCATION_ATTRIBUTES = 4 };
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLES = 2,
    PROFILE_TIME = 3,
    PROFILE_DURATION = 4,
    PROFILE_PERIOD_TYPE = 5,
    PROFILE_PERIOD = 6,
    PROFILE_ID = 7,
    PROFILE_ATTRIBUTES = 11
};
enum {
    TABLE_MAPPINGS = 1,
    TABLE_LOCATIONS = 2,
    TABLE_FUNCTIONS = 3,
    TABLE_LINKS = 4,
    TABLE_STRINGS = 5,
    TABLE_ATTRIBUTES = 6,
    TABLE_STACKS = 7
};

/* Where the parts of a sample's identity are among its numbers. */
enum { IDENTITY_STACK, IDENTITY_LINK, IDENTITY_ATTRIBUTES };

struct value_type {
    int32_t type;
    int32_t unit;
};

struct otlp_profile {
    struct value_type type;
    struct value_type period_type;
    int64_t period;
    uint64_t time;
    uint64_t duration;
    uint8_t id[ID_BYTES];
    struct intern identities; /* a sample's stack, link and attributes, int32_t each */
    int64_t *values;          /* by number of the identity */
    size_t value_room;
    struct intern attributes; /* int32_t */
};

/* A table is the index of its items: an item is the same as another exactly if its encoding is. A
 * stack is kept as its locations' numbers, since these are given only when all are known. */
struct otlp_writer {
    struct arena arena;
    struct intern strings, attributes, functions, mappings, locations, stacks, links;
    struct arena_list profiles; /* struct otlp_profile */
    struct wire resource;       /* their content */
    struct wire scope;
    const char *schema_url;
    struct wire item; /* the one that is being encoded */
};

/* --- tables --- */

static int32_t known(struct otlp_writer *w, struct intern *table, const void *key, size_t size) {
    bool is_new;
    const int32_t number = intern(&w->arena, table, key, size, &is_new);
    return number < 0 ? 0 : number;
}

/* The item that has just been encoded. */
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

/* The string itself, or a copy that is UTF-8; "" without memory. */
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

static void put_text(struct otlp_writer *w, struct wire *wire, unsigned field, const char *string) {
    const char *const valid = text(w, string);
    wire_bytes(wire, field, valid, strlen(valid));
}

/* Begins an attribute of the table; the value is to be written next. */
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
    put_text(w, &w->item, ANY_STRING, value);
    return end_attribute(w, begun, 0);
}

int32_t otlp_attribute_int(struct otlp_writer *w, const char *key, int64_t value,
                           const char *unit) {
    const size_t begun = begin_attribute(w, key);
    wire_number_present(&w->item, ANY_INT, (uint64_t)value);
    return end_attribute(w, begun, string_index(w, unit));
}

int32_t otlp_attribute_bool(struct otlp_writer *w, const char *key, bool value) {
    const size_t begun = begin_attribute(w, key);
    wire_number_present(&w->item, ANY_BOOL, value);
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

static size_t begin_resource(struct otlp_writer *w, const char *key, size_t *value) {
    const size_t begun = wire_begin(&w->resource, RESOURCE_ATTRIBUTES);
    put_text(w, &w->resource, KEY_VALUE_KEY, key);
    *value = wire_begin(&w->resource, KEY_VALUE_VALUE);
    return begun;
}

static void end_resource(struct otlp_writer *w, size_t begun, size_t value) {
    wire_end(&w->resource, value);
    wire_end(&w->resource, begun);
}

void otlp_resource_string(struct otlp_writer *w, const char *key, const char *value) {
    size_t inner;
    const size_t begun = begin_resource(w, key, &inner);
    put_text(w, &w->resource, ANY_STRING, value);
    end_resource(w, begun, inner);
}

void otlp_resource_int(struct otlp_writer *w, const char *key, int64_t value) {
    size_t inner;
    const size_t begun = begin_resource(w, key, &inner);
    wire_number_present(&w->resource, ANY_INT, (uint64_t)value);
    end_resource(w, begun, inner);
}

void otlp_resource_double(struct otlp_writer *w, const char *key, double value) {
    size_t inner;
    uint64_t bits;
    const size_t begun = begin_resource(w, key, &inner);
    memcpy(&bits, &value, sizeof bits);
    wire_fixed64_present(&w->resource, ANY_DOUBLE, bits);
    end_resource(w, begun, inner);
}

void otlp_resource_bool(struct otlp_writer *w, const char *key, bool value) {
    size_t inner;
    const size_t begun = begin_resource(w, key, &inner);
    wire_number_present(&w->resource, ANY_BOOL, value);
    end_resource(w, begun, inner);
}

void otlp_schema(struct otlp_writer *w, const char *url) {
    w->schema_url = url;
}

void otlp_scope(struct otlp_writer *w, const char *name, const char *version) {
    w->scope.size = 0;
    put_text(w, &w->scope, SCOPE_NAME, name);
    put_text(w, &w->scope, SCOPE_VERSION, version);
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

/* The same set of attributes must look the same. */
static void put_in_order(int32_t *numbers, size_t count) {
    for (size_t i = 1; i < count; i++)
        for (size_t at = i; at > 0 && numbers[at - 1] > numbers[at]; at--) {
            const int32_t larger = numbers[at - 1];
            numbers[at - 1] = numbers[at];
            numbers[at] = larger;
        }
}

static bool has_room(struct otlp_writer *w, struct otlp_profile *profile, size_t number) {
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
    int32_t key[IDENTITY_ATTRIBUTES + MAX_SAMPLE_ATTRIBUTES] = {identity->stack, identity->link};
    bool is_new;
    const size_t count = identity->attribute_count < MAX_SAMPLE_ATTRIBUTES
                             ? identity->attribute_count
                             : MAX_SAMPLE_ATTRIBUTES;
    if (count)
        memcpy(key + IDENTITY_ATTRIBUTES, identity->attributes, count * sizeof *key);
    put_in_order(key + IDENTITY_ATTRIBUTES, count);
    const int32_t number = intern(&w->arena, &profile->identities, key,
                                  (IDENTITY_ATTRIBUTES + count) * sizeof *key, &is_new);
    if (number >= 0 && has_room(w, profile, (size_t)number))
        profile->values[number] += value;
}

/* --- opening and closing --- */

struct otlp_writer *otlp_writer_open(void) {
    struct otlp_writer *const w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
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
    wire_free(&w->resource);
    wire_free(&w->scope);
    wire_free(&w->item);
    arena_free(&w->arena);
    free(w);
}

/* --- packing --- */

static void put_table(struct wire *out, unsigned field, const struct intern *table) {
    for (int32_t i = 0; i < table->count; i++)
        wire_bytes(out, field, table->keys[i].bytes, table->keys[i].size);
}

struct use {
    uint32_t count;
    int32_t location; /* as the callers know it */
};

static int most_used_first(const void *a, const void *b) {
    const struct use *const left = a;
    const struct use *const right = b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return (left->location > right->location) - (left->location < right->location);
}

static void count_uses(const struct otlp_writer *w, struct use *uses) {
    for (int32_t i = 0; i < w->locations.count; i++)
        uses[i].location = i;
    for (int32_t i = 0; i < w->stacks.count; i++) {
        const struct intern_key *const stack = &w->stacks.keys[i];
        const int32_t *const locations = stack->bytes;
        for (size_t k = 0; k < stack->size / sizeof *locations; k++)
            uses[locations[k]].count++;
    }
}

/* In which order the locations are listed, and the place of each. */
struct ranking {
    struct use *uses;
    int32_t *places;
};

/* Those that most stacks have get the numbers that take one byte: stacks are the larger part of an
 * export. false: no memory. */
static bool rank(struct otlp_writer *w, struct ranking *ranking) {
    const size_t count = (size_t)w->locations.count;
    struct use *const uses = arena_take(&w->arena, count * sizeof *uses);
    int32_t *const places = arena_take(&w->arena, count * sizeof *places);
    if (!uses || !places)
        return false;
    count_uses(w, uses);
    qsort(uses + 1, count - 1, sizeof *uses, most_used_first); /* 0 is the zero value */
    for (size_t i = 0; i < count; i++)
        places[uses[i].location] = (int32_t)i;
    *ranking = (struct ranking){uses, places};
    return true;
}

static void put_locations(struct wire *out, const struct otlp_writer *w, const struct use *uses) {
    for (int32_t i = 0; i < w->locations.count; i++) {
        const struct intern_key *const location = &w->locations.keys[uses[i].location];
        wire_bytes(out, TABLE_LOCATIONS, location->bytes, location->size);
    }
}

static void put_stack(struct wire *out, const struct intern_key *stack, const int32_t *places) {
    const size_t begun = wire_begin(out, TABLE_STACKS);
    wire_packed(out, STACK_LOCATIONS, stack->bytes, stack->size / sizeof *places, places);
    wire_end(out, begun);
}

static void put_dictionary(struct wire *out, const struct otlp_writer *w,
                           const struct ranking *ranking) {
    const size_t begun = wire_begin(out, REQUEST_DICTIONARY);
    put_table(out, TABLE_MAPPINGS, &w->mappings);
    put_locations(out, w, ranking->uses);
    put_table(out, TABLE_FUNCTIONS, &w->functions);
    put_table(out, TABLE_LINKS, &w->links);
    put_table(out, TABLE_STRINGS, &w->strings);
    put_table(out, TABLE_ATTRIBUTES, &w->attributes);
    for (int32_t i = 0; i < w->stacks.count; i++)
        put_stack(out, &w->stacks.keys[i], ranking->places);
    wire_end(out, begun);
}

static void put_value_type(struct wire *out, unsigned field, struct value_type type) {
    const size_t begun = wire_begin(out, field);
    wire_number(out, VALUE_TYPE_TYPE, (uint64_t)type.type);
    wire_number(out, VALUE_TYPE_UNIT, (uint64_t)type.unit);
    wire_end(out, begun);
}

static void put_sample(struct wire *out, const struct intern_key *identity, int64_t value) {
    const int32_t *const numbers = identity->bytes;
    const size_t begun = wire_begin(out, PROFILE_SAMPLES);
    wire_number(out, SAMPLE_STACK, (uint64_t)numbers[IDENTITY_STACK]);
    wire_packed(out, SAMPLE_ATTRIBUTES, numbers + IDENTITY_ATTRIBUTES,
                identity->size / sizeof *numbers - IDENTITY_ATTRIBUTES, NULL);
    wire_number(out, SAMPLE_LINK, (uint64_t)numbers[IDENTITY_LINK]);
    const size_t values = wire_begin(out, SAMPLE_VALUES);
    wire_varint(out, (uint64_t)value);
    wire_end(out, values);
    wire_end(out, begun);
}

static void put_profile_attributes(struct wire *out, const struct otlp_profile *profile) {
    if (!profile->attributes.count)
        return;
    const size_t begun = wire_begin(out, PROFILE_ATTRIBUTES);
    for (int32_t i = 0; i < profile->attributes.count; i++)
        wire_varint(out, (uint64_t) * (const int32_t *)profile->attributes.keys[i].bytes);
    wire_end(out, begun);
}

static void put_profile(struct wire *out, const struct otlp_profile *profile) {
    const size_t begun = wire_begin(out, SCOPE_PROFILES_PROFILES);
    put_value_type(out, PROFILE_SAMPLE_TYPE, profile->type);
    for (int32_t i = 0; i < profile->identities.count; i++)
        put_sample(out, &profile->identities.keys[i], profile->values[i]);
    wire_fixed64(out, PROFILE_TIME, profile->time);
    wire_number(out, PROFILE_DURATION, profile->duration);
    put_value_type(out, PROFILE_PERIOD_TYPE, profile->period_type);
    wire_number(out, PROFILE_PERIOD, (uint64_t)profile->period);
    wire_bytes(out, PROFILE_ID, profile->id, ID_BYTES);
    put_profile_attributes(out, profile);
    wire_end(out, begun);
}

static void put_schema_url(struct wire *out, unsigned field, const struct otlp_writer *w) {
    if (w->schema_url)
        wire_bytes(out, field, w->schema_url, strlen(w->schema_url));
}

static void put_resource_profiles(struct wire *out, const struct otlp_writer *w) {
    const size_t resource = wire_begin(out, REQUEST_RESOURCE_PROFILES);
    wire_bytes(out, RESOURCE_PROFILES_RESOURCE, w->resource.bytes, w->resource.size);
    const size_t scope = wire_begin(out, RESOURCE_PROFILES_SCOPE_PROFILES);
    wire_bytes(out, SCOPE_PROFILES_SCOPE, w->scope.bytes, w->scope.size);
    for (size_t i = 0; i < w->profiles.count; i++)
        put_profile(out, w->profiles.items[i]);
    put_schema_url(out, SCOPE_PROFILES_SCHEMA_URL, w);
    wire_end(out, scope);
    put_schema_url(out, RESOURCE_PROFILES_SCHEMA_URL, w);
    wire_end(out, resource);
}

/* Not less than most exports take: a number is rarely larger than two bytes on the wire. */
static size_t expected_size(const struct otlp_writer *w) {
    size_t size = w->resource.size;
    const struct intern *const tables[] = {&w->strings,  &w->attributes, &w->functions,
                                           &w->mappings, &w->locations,  &w->stacks,
                                           &w->links};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (int32_t k = 0; k < tables[i]->count; k++)
            size += tables[i]->keys[k].size / (tables[i] == &w->stacks ? 2 : 1) + 4;
    for (size_t i = 0; i < w->profiles.count; i++)
        size += 20 * (size_t)((struct otlp_profile *)w->profiles.items[i])->identities.count + 128;
    return size;
}

uint8_t *otlp_writer_pack(struct otlp_writer *w, size_t *size) {
    struct wire out = {.bytes = NULL};
    struct ranking ranking;
    if (w->arena.failed || w->resource.failed || w->scope.failed || !rank(w, &ranking))
        return NULL;
    (void)wire_reserve(&out, expected_size(w));
    put_resource_profiles(&out, w);
    put_dictionary(&out, w, &ranking);
    return wire_take(&out, size);
}

/* --- JSON --- */

static void *arena_alloc(void *arena, size_t size) {
    return arena_take(arena, size);
}

static void arena_keep(void *arena, void *memory) {
    (void)arena;
    (void)memory;
}

uint8_t *otlp_writer_json(struct otlp_writer *w, size_t *size) {
    size_t packed_size;
    uint8_t *const packed = otlp_writer_pack(w, &packed_size);
    ProtobufCAllocator allocator = {arena_alloc, arena_keep, &w->arena};
    const ProtobufCMessage *const request =
        packed ? protobuf_c_message_unpack(&SERVICE(export_profiles_service_request__descriptor),
                                           &allocator, packed_size, packed)
               : NULL;
    free(packed);
    return request ? (uint8_t *)otlp_json(request, size) : NULL;
}
