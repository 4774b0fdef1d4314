#include "otlp_state.h"

#include "otlp_json.h"
#include "profiles_service.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define SERVICE(name) opentelemetry__proto__collector__profiles__v1development__##name

/* Field numbers: proto/. */
enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };
enum {
    RESOURCE_PROFILES_RESOURCE = 1,
    RESOURCE_PROFILES_SCOPE_PROFILES = 2,
    RESOURCE_PROFILES_SCHEMA_URL = 3
};
enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES = 2, SCOPE_PROFILES_SCHEMA_URL = 3 };
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { STACK_LOCATIONS = 1 };
enum {
    FIELD_SAMPLE_STACK = 1,
    FIELD_SAMPLE_ATTRIBUTES = 2,
    FIELD_SAMPLE_LINK = 3,
    FIELD_SAMPLE_VALUES = 4
};
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

/* --- the dictionary --- */

static void pack_table(struct wire *out, unsigned field, const struct intern *table) {
    for (int32_t i = 0; i < table->count; i++)
        wire_bytes(out, field, table->keys[i].bytes, table->keys[i].size);
}

struct use {
    uint32_t count;
    int32_t location; /* the number that the callers use */
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

/* The order in which the locations are listed, and the place of each. */
struct ranking {
    struct use *uses;
    int32_t *places;
};

/* Gives the locations of most stacks the numbers that take one byte: stacks are the larger part of
 * an export. false: no memory. */
static bool rank_locations(struct otlp_writer *w, struct ranking *ranking) {
    const size_t count = (size_t)w->locations.count;
    struct use *const uses = arena_take(&w->arena, count * sizeof *uses);
    int32_t *const places = arena_take(&w->arena, count * sizeof *places);
    if (!uses || !places)
        return false;
    count_location_uses(w, uses);
    qsort(uses + 1, count - 1, sizeof *uses, most_used_first); /* 0 is the zero value */
    for (size_t i = 0; i < count; i++)
        places[uses[i].location] = (int32_t)i;
    *ranking = (struct ranking){uses, places};
    return true;
}

static void pack_dictionary(struct wire *out, const struct otlp_writer *w,
                            const struct ranking *ranking) {
    const size_t begun = wire_begin(out, REQUEST_DICTIONARY);
    pack_table(out, TABLE_MAPPINGS, &w->mappings);
    for (int32_t i = 0; i < w->locations.count; i++) {
        const struct intern_key *const location = &w->locations.keys[ranking->uses[i].location];
        wire_bytes(out, TABLE_LOCATIONS, location->bytes, location->size);
    }
    pack_table(out, TABLE_FUNCTIONS, &w->functions);
    pack_table(out, TABLE_LINKS, &w->links);
    pack_table(out, TABLE_STRINGS, &w->strings);
    pack_table(out, TABLE_ATTRIBUTES, &w->attributes);
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

static void pack_value_type(struct wire *out, unsigned field, struct value_type type) {
    const size_t begun = wire_begin(out, field);
    wire_number(out, VALUE_TYPE_TYPE, (uint64_t)type.type);
    wire_number(out, VALUE_TYPE_UNIT, (uint64_t)type.unit);
    wire_end(out, begun);
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

static void pack_profile(struct wire *out, const struct otlp_profile *profile) {
    const size_t begun = wire_begin(out, SCOPE_PROFILES_PROFILES);
    pack_value_type(out, PROFILE_SAMPLE_TYPE, profile->type);
    for (int32_t i = 0; i < profile->identities.count; i++)
        pack_sample(out, &profile->identities.keys[i], profile->values[i]);
    wire_fixed64(out, PROFILE_TIME, profile->time);
    wire_number(out, PROFILE_DURATION, profile->duration);
    pack_value_type(out, PROFILE_PERIOD_TYPE, profile->period_type);
    wire_number(out, PROFILE_PERIOD, (uint64_t)profile->period);
    wire_bytes(out, PROFILE_ID, profile->id, ID_BYTES);
    if (profile->attributes.count) {
        const size_t attributes = wire_begin(out, PROFILE_ATTRIBUTES);
        for (int32_t i = 0; i < profile->attributes.count; i++)
            wire_varint(out, (uint64_t) * (const int32_t *)profile->attributes.keys[i].bytes);
        wire_end(out, attributes);
    }
    wire_end(out, begun);
}

static void pack_schema_url(struct wire *out, unsigned field, const struct otlp_writer *w) {
    if (w->schema_url)
        wire_bytes(out, field, w->schema_url, strlen(w->schema_url));
}

static void pack_resource_profiles(struct wire *out, const struct otlp_writer *w) {
    const size_t resource = wire_begin(out, REQUEST_RESOURCE_PROFILES);
    wire_bytes(out, RESOURCE_PROFILES_RESOURCE, w->resource.bytes, w->resource.size);
    const size_t scope = wire_begin(out, RESOURCE_PROFILES_SCOPE_PROFILES);
    wire_bytes(out, SCOPE_PROFILES_SCOPE, w->scope.bytes, w->scope.size);
    for (size_t i = 0; i < w->profiles.count; i++)
        pack_profile(out, w->profiles.items[i]);
    pack_schema_url(out, SCOPE_PROFILES_SCHEMA_URL, w);
    wire_end(out, scope);
    pack_schema_url(out, RESOURCE_PROFILES_SCHEMA_URL, w);
    wire_end(out, resource);
}

/* --- the request --- */

/* Estimates at least the size of most exports: a number is rarely larger than two bytes on the
 * wire. */
static size_t expected_pack_size(const struct otlp_writer *w) {
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
    if (w->arena.failed || w->resource.failed || w->scope.failed || !rank_locations(w, &ranking))
        return NULL;
    (void)wire_reserve(&out, expected_pack_size(w));
    pack_resource_profiles(&out, w);
    pack_dictionary(&out, w, &ranking);
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
