#include "otlp_state.h"

#include "otlp_json.h"
#include "profiles_service.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define SERVICE(name)  opentelemetry__proto__collector__profiles__v1development__##name
#define PROFILES(name) opentelemetry__proto__profiles__v1development__##name
typedef Opentelemetry__Proto__Profiles__V1development__Profile Profile;
typedef Opentelemetry__Proto__Profiles__V1development__ResourceProfiles ResourceProfiles;
typedef Opentelemetry__Proto__Profiles__V1development__ScopeProfiles ScopeProfiles;
typedef Opentelemetry__Proto__Profiles__V1development__ValueType ValueType;

/* Lists field numbers (proto/) of the parts that are appended to a message that protobuf-c has
 * packed. */
enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };
enum { RESOURCE_PROFILES_SCOPE_PROFILES = 2 };
enum { SCOPE_PROFILES_PROFILES = 2 };
enum { PROFILE_SAMPLES = 2 };
enum { STACK_LOCATIONS = 1 };
enum {
    FIELD_SAMPLE_STACK = 1,
    FIELD_SAMPLE_ATTRIBUTES = 2,
    FIELD_SAMPLE_LINK = 3,
    FIELD_SAMPLE_VALUES = 4
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
enum { ARRAY_VALUES = 1 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, ATTRIBUTE_UNIT = 3 };
enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME = 2, FUNCTION_FILE = 3, FUNCTION_START_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2 };
enum { MAPPING_START = 1, MAPPING_LIMIT, MAPPING_FILE_OFFSET, MAPPING_FILE, MAPPING_ATTRIBUTES };
enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS = 2, LOCATION_LINES = 3, LOCATION_ATTRIBUTES = 4 };

/* --- the dictionary --- */

static void pack_function(struct wire *out, const struct intern_key *key) {
    const struct listed_function *const function = key->bytes;
    wire_number(out, FUNCTION_NAME, (uint64_t)function->name);
    wire_number(out, FUNCTION_SYSTEM_NAME, (uint64_t)function->system_name);
    wire_number(out, FUNCTION_FILE, (uint64_t)function->file);
    wire_number(out, FUNCTION_START_LINE, (uint64_t)function->start_line);
}

static void pack_mapping(struct wire *out, const struct intern_key *key) {
    const struct listed_mapping *const mapping = key->bytes;
    wire_number(out, MAPPING_START, mapping->start);
    wire_number(out, MAPPING_LIMIT, mapping->limit);
    wire_number(out, MAPPING_FILE_OFFSET, mapping->file_offset);
    wire_number(out, MAPPING_FILE, (uint64_t)mapping->filename);
    wire_packed(out, MAPPING_ATTRIBUTES, mapping->attributes,
                (key->size - LISTED_MAPPING_BYTES) / sizeof *mapping->attributes, NULL);
}

static void pack_location(struct wire *out, const struct intern_key *key) {
    const struct listed_location *const location = key->bytes;
    wire_number(out, LOCATION_MAPPING, (uint64_t)location->mapping);
    wire_number(out, LOCATION_ADDRESS, location->address);
    for (size_t i = 0; i < (key->size - sizeof *location) / sizeof *location->lines; i++) {
        const size_t line = wire_begin(out, LOCATION_LINES);
        wire_number(out, LINE_FUNCTION, (uint64_t)location->lines[i].function);
        wire_number(out, LINE_LINE, (uint64_t)location->lines[i].line);
        wire_end(out, line);
    }
    wire_packed(out, LOCATION_ATTRIBUTES, &location->frame_type, 1, NULL);
}

static void pack_link(struct wire *out, const struct intern_key *key) {
    const struct listed_link *const link = key->bytes;
    wire_bytes(out, LINK_TRACE_ID, link->trace_id, sizeof link->trace_id);
    wire_bytes(out, LINK_SPAN_ID, link->span_id, sizeof link->span_id);
}

static void pack_texts(struct wire *out, const char *texts, size_t size) {
    const size_t array = wire_begin(out, ANY_ARRAY);
    for (const char *at = texts; at < texts + size; at += strlen(at) + 1) {
        const size_t value = wire_begin(out, ARRAY_VALUES);
        wire_bytes(out, ANY_STRING, at, strlen(at));
        wire_end(out, value);
    }
    wire_end(out, array);
}

static void pack_attribute(struct wire *out, const struct intern_key *key) {
    const struct listed_attribute *const attribute = key->bytes;
    const size_t text_size = key->size - LISTED_ATTRIBUTE_BYTES;
    wire_number(out, ATTRIBUTE_KEY, (uint64_t)attribute->key);
    const size_t value = wire_begin(out, ATTRIBUTE_VALUE);
    if (attribute->form == ANY_STRING)
        wire_bytes(out, ANY_STRING, attribute->text, text_size);
    else if (attribute->form == ANY_ARRAY)
        pack_texts(out, attribute->text, text_size);
    else if (attribute->form == ANY_DOUBLE)
        wire_fixed64_present(out, ANY_DOUBLE, (uint64_t)attribute->number);
    else
        wire_number_present(out, attribute->form, (uint64_t)attribute->number);
    wire_end(out, value);
    wire_number(out, ATTRIBUTE_UNIT, (uint64_t)attribute->unit);
}

typedef void pack_item(struct wire *out, const struct intern_key *key);

/* Packs a table. The zero value, item 0, stays an empty message. */
static void pack_table(struct wire *out, unsigned field, const struct intern *table,
                       pack_item *pack) {
    for (int32_t i = 0; i < table->count; i++) {
        const size_t begun = wire_begin(out, field);
        if (i > 0)
            pack(out, &table->keys[i]);
        wire_end(out, begun);
    }
}

struct use {
    uint32_t count;
    int32_t location; /* number by which the callers know the location */
};

static int most_used_first(const void *a, const void *b) {
    const struct use *const left = a;
    const struct use *const right = b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return (left->location > right->location) - (left->location < right->location);
}

static void count_location_uses(const struct otlp_writer *w, struct use *uses) {
    for (int32_t i = 0; i < w->locations.count; i++)
        uses[i].location = i;
    for (int32_t i = 0; i < w->stacks.count; i++) {
        const struct intern_key *const stack = &w->stacks.keys[i];
        const int32_t *const locations = stack->bytes;
        for (size_t k = 0; k < stack->size / sizeof *locations; k++)
            uses[locations[k]].count++;
    }
}

/* Holds the order in which the locations are listed, and the place of each location in it. */
struct ranking {
    struct use *uses;
    int32_t *places;
};

/* Ranks the locations, so that the locations that are in most stacks get numbers that take one
 * byte, because stacks are the larger part of an export. Returns false if there is no memory. */
static bool rank_locations(struct otlp_writer *w, struct ranking *ranking) {
    const size_t count = (size_t)w->locations.count;
    struct use *const uses = arena_take(&w->arena, count * sizeof *uses);
    int32_t *const places = arena_take(&w->arena, count * sizeof *places);
    if (!uses || !places)
        return false;
    count_location_uses(w, uses);
    /* leaves item 0, the zero value, at the first place */
    qsort(uses + 1, count - 1, sizeof *uses, most_used_first);
    for (size_t i = 0; i < count; i++)
        places[uses[i].location] = (int32_t)i;
    *ranking = (struct ranking){uses, places};
    return true;
}

static void pack_dictionary(struct wire *out, const struct otlp_writer *w,
                            const struct ranking *ranking) {
    const size_t begun = wire_begin(out, REQUEST_DICTIONARY);
    pack_table(out, TABLE_MAPPINGS, &w->mappings, pack_mapping);
    for (int32_t i = 0; i < w->locations.count; i++) {
        const size_t item = wire_begin(out, TABLE_LOCATIONS);
        if (i > 0)
            pack_location(out, &w->locations.keys[ranking->uses[i].location]);
        wire_end(out, item);
    }
    pack_table(out, TABLE_FUNCTIONS, &w->functions, pack_function);
    pack_table(out, TABLE_LINKS, &w->links, pack_link);
    for (int32_t i = 0; i < w->strings.count; i++)
        wire_bytes(out, TABLE_STRINGS, w->strings.keys[i].bytes, w->strings.keys[i].size);
    pack_table(out, TABLE_ATTRIBUTES, &w->attributes, pack_attribute);
    for (int32_t i = 0; i < w->stacks.count; i++) {
        const struct intern_key *const stack = &w->stacks.keys[i];
        const size_t item = wire_begin(out, TABLE_STACKS);
        wire_packed(out, STACK_LOCATIONS, stack->bytes, stack->size / sizeof *ranking->places,
                    ranking->places);
        wire_end(out, item);
    }
    wire_end(out, begun);
}

/* --- profiles --- */

/* Packs a message. A message that has a repeated field with tens of thousands of values is packed
 * in two parts, the fields before that field and those after it. The values are written in between,
 * without structs of their own. So all fields are in the order of their numbers. */
static void pack_message(struct wire *out, const ProtobufCMessage *message) {
    if (wire_reserve(out, protobuf_c_message_get_packed_size(message)))
        out->size += protobuf_c_message_pack(message, out->bytes + out->size);
}

static void pack_sample(struct wire *out, const struct intern_key *identity, int64_t value) {
    const int32_t *const numbers = identity->bytes;
    const size_t begun = wire_begin(out, PROFILE_SAMPLES);
    wire_number(out, FIELD_SAMPLE_STACK, (uint64_t)numbers[IDENTITY_STACK]);
    wire_packed(out, FIELD_SAMPLE_ATTRIBUTES, numbers + IDENTITY_ATTRIBUTES,
                identity->size / sizeof *numbers - IDENTITY_ATTRIBUTES, NULL);
    wire_number(out, FIELD_SAMPLE_LINK, (uint64_t)numbers[IDENTITY_LINK]);
    const size_t values = wire_begin(out, FIELD_SAMPLE_VALUES);
    wire_varint(out, (uint64_t)value);
    wire_end(out, values);
    wire_end(out, begun);
}

static ValueType value_type_message(struct value_type from) {
    ValueType message;
    PROFILES(value_type__init)(&message);
    message.type_strindex = from.type;
    message.unit_strindex = from.unit;
    return message;
}

static void pack_profile(struct wire *out, struct arena *arena, struct otlp_profile *profile) {
    ValueType type = value_type_message(profile->type);
    ValueType period_type = value_type_message(profile->period_type);
    Profile head;
    Profile tail;
    PROFILES(profile__init)(&head);
    PROFILES(profile__init)(&tail);
    head.sample_type = &type;
    tail.time_unix_nano = profile->time;
    tail.duration_nano = profile->duration;
    tail.period_type = &period_type;
    tail.period = profile->period;
    tail.profile_id = (ProtobufCBinaryData){ID_BYTES, profile->id};
    const size_t count = (size_t)profile->attributes.count;
    tail.attribute_indices = arena_take(arena, count * sizeof *tail.attribute_indices);
    tail.n_attribute_indices = tail.attribute_indices ? count : 0;
    for (size_t i = 0; i < tail.n_attribute_indices; i++)
        tail.attribute_indices[i] = *(const int32_t *)profile->attributes.keys[i].bytes;

    const size_t begun = wire_begin(out, SCOPE_PROFILES_PROFILES);
    pack_message(out, &head.base);
    for (int32_t i = 0; i < profile->identities.count; i++)
        pack_sample(out, &profile->identities.keys[i], profile->values[i]);
    pack_message(out, &tail.base);
    wire_end(out, begun);
}

static void pack_scope_profiles(struct wire *out, struct otlp_writer *w, size_t first,
                                size_t past) {
    ScopeProfiles head;
    ScopeProfiles tail;
    PROFILES(scope_profiles__init)(&head);
    PROFILES(scope_profiles__init)(&tail);
    head.scope = &w->scope;
    tail.schema_url = w->schema_url;

    const size_t begun = wire_begin(out, RESOURCE_PROFILES_SCOPE_PROFILES);
    pack_message(out, &head.base);
    for (size_t i = first; i < past; i++)
        pack_profile(out, &w->arena, w->profiles.items[i]);
    pack_message(out, &tail.base);
    wire_end(out, begun);
}

static void pack_resource_profiles(struct wire *out, struct otlp_writer *w,
                                   const struct arena_list *attributes, size_t first, size_t past) {
    Opentelemetry__Proto__Resource__V1__Resource resource;
    ResourceProfiles head;
    ResourceProfiles tail;
    opentelemetry__proto__resource__v1__resource__init(&resource);
    PROFILES(resource_profiles__init)(&head);
    PROFILES(resource_profiles__init)(&tail);
    resource.attributes = (KeyValue **)attributes->items;
    resource.n_attributes = attributes->count;
    head.resource = &resource;
    tail.schema_url = w->schema_url;

    const size_t begun = wire_begin(out, REQUEST_RESOURCE_PROFILES);
    pack_message(out, &head.base);
    pack_scope_profiles(out, w, first, past);
    pack_message(out, &tail.base);
    wire_end(out, begun);
}

/* Packs the resources that were ended, and the last one. Leaves the last one out if it has neither
 * attributes nor profiles, unless it is the only one. */
static void pack_resources(struct wire *out, struct otlp_writer *w) {
    size_t first = 0;
    for (size_t i = 0; i < w->earlier.count; i++) {
        const struct ended_resource *const ended = w->earlier.items[i];
        pack_resource_profiles(out, w, &ended->attributes, first, ended->profiles);
        first = ended->profiles;
    }
    if (!w->earlier.count || w->resource.count || first < w->profiles.count)
        pack_resource_profiles(out, w, &w->resource, first, w->profiles.count);
}

/* --- the request --- */

/* Estimates a size that most exports do not exceed: a number is rarely larger than two bytes on the
 * wire. */
static size_t expected_pack_size(const struct otlp_writer *w) {
    size_t size = 0;
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
    if (w->arena.failed || !rank_locations(w, &ranking))
        return NULL;
    (void)wire_reserve(&out, expected_pack_size(w));
    pack_resources(&out, w);
    pack_dictionary(&out, w, &ranking);
    out.failed |= w->arena.failed;
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
