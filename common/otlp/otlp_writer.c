#include "otlp_writer.h"

#include "arena.h"
#include "intern.h"
#include "otlp_json.h"
#include "profiles_service.pb-c.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

#define COMMON(name)   Opentelemetry__Proto__Common__V1__##name
#define RESOURCE(name) Opentelemetry__Proto__Resource__V1__##name
#define PROFILES(name) Opentelemetry__Proto__Profiles__V1development__##name
#define SERVICE(name)  Opentelemetry__Proto__Collector__Profiles__V1development__##name

enum { MAX_SAMPLE_ATTRIBUTES = 8 };

/* A dictionary table: its items, and the index that keeps them distinct. */
struct table {
    struct intern index;
    struct arena_list items;
};

struct otlp_profile {
    PROFILES(Profile) message;
    struct intern identities;
    struct arena_list samples;
    struct arena_list attributes;
};

struct otlp_writer {
    struct arena arena;
    struct table strings, attributes, functions, mappings, locations, stacks;
    struct arena_list resource; /* KeyValue */
    struct arena_list profiles; /* struct otlp_profile */
    COMMON(InstrumentationScope) scope;
};

/* A new message of the arena, initialised; NULL without memory. */
#define NEW(writer, variable, type, init)                                                          \
    type *const variable = arena_take(&(writer)->arena, sizeof *variable);                         \
    if (variable)                                                                                  \
    init(variable)

/* --- tables --- */

static int32_t known(struct otlp_writer *w, struct table *table, const void *key, size_t size,
                     bool *is_new) {
    return intern(&w->arena, &table->index, key, size, is_new);
}

/* The item must be listed exactly when its key was new. */
static int32_t listed(struct otlp_writer *w, struct table *table, int32_t number, void *item) {
    if (!item || !arena_list_add(&w->arena, &table->items, item))
        return 0;
    return number;
}

static char *text(struct otlp_writer *w, const char *string) {
    char *const copy = arena_copy(&w->arena, string, strlen(string));
    if (copy)
        utf8_make_valid(copy);
    return copy;
}

static int32_t string_index(struct otlp_writer *w, const char *string) {
    bool is_new;
    char *const valid = text(w, string);
    if (!valid)
        return 0;
    const int32_t number = known(w, &w->strings, valid, strlen(valid), &is_new);
    return is_new ? listed(w, &w->strings, number, valid) : number;
}

static int32_t *copy_indices(struct otlp_writer *w, const int32_t *indices, size_t count) {
    return (int32_t *)(void *)arena_copy(&w->arena, indices, count * sizeof *indices);
}

/* --- attributes --- */

static COMMON(AnyValue) * new_value(struct otlp_writer *w, COMMON(AnyValue__ValueCase) kind) {
    NEW(w, value, COMMON(AnyValue), opentelemetry__proto__common__v1__any_value__init);
    if (value)
        value->value_case = kind;
    return value;
}

static COMMON(AnyValue) * string_value(struct otlp_writer *w, const char *string) {
    COMMON(AnyValue) *const value =
        new_value(w, OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE);
    if (value)
        value->string_value = text(w, string);
    return value;
}

static COMMON(AnyValue) * int_value(struct otlp_writer *w, int64_t number) {
    COMMON(AnyValue) *const value =
        new_value(w, OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE);
    if (value)
        value->int_value = number;
    return value;
}

static int32_t add_attribute(struct otlp_writer *w, int32_t number, int32_t key,
                             COMMON(AnyValue) * value, int32_t unit) {
    NEW(w, item, PROFILES(KeyValueAndUnit),
        opentelemetry__proto__profiles__v1development__key_value_and_unit__init);
    if (!item)
        return 0;
    item->key_strindex = key;
    item->value = value;
    item->unit_strindex = unit;
    return listed(w, &w->attributes, number, item);
}

/* What tells attributes apart: kind, key, unit, and the value as a number. */
struct attribute_key {
    int64_t value;
    int32_t key;
    int32_t unit;
    char kind;
    char padding[7];
};

int32_t otlp_attribute_string(struct otlp_writer *w, const char *key, const char *value) {
    bool is_new;
    char *const valid = text(w, value);
    if (!valid)
        return 0;
    /* the value's own bytes, so that it does not appear in the string table unused */
    const size_t size = strlen(valid);
    char *const bytes = arena_take(&w->arena, sizeof(struct attribute_key) + size);
    if (!bytes)
        return 0;
    const struct attribute_key head = {.key = string_index(w, key), .kind = 's'};
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, valid, size);
    const int32_t number = known(w, &w->attributes, bytes, sizeof head + size, &is_new);
    return is_new ? add_attribute(w, number, head.key, string_value(w, valid), 0) : number;
}

int32_t otlp_attribute_int(struct otlp_writer *w, const char *key, int64_t value,
                           const char *unit) {
    bool is_new;
    const struct attribute_key identity = {
        .value = value, .key = string_index(w, key), .unit = string_index(w, unit), .kind = 'i'};
    const int32_t number = known(w, &w->attributes, &identity, sizeof identity, &is_new);
    if (!is_new)
        return number;
    return add_attribute(w, number, identity.key, int_value(w, value), identity.unit);
}

int32_t otlp_attribute_bool(struct otlp_writer *w, const char *key, bool value) {
    bool is_new;
    const struct attribute_key identity = {
        .value = value, .key = string_index(w, key), .kind = 'b'};
    const int32_t number = known(w, &w->attributes, &identity, sizeof identity, &is_new);
    if (!is_new)
        return number;
    COMMON(AnyValue) *const item =
        new_value(w, OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE);
    if (item)
        item->bool_value = value;
    return add_attribute(w, number, identity.key, item, 0);
}

/* --- functions, mappings, locations, stacks --- */

int32_t otlp_function(struct otlp_writer *w, const char *name, const char *system_name,
                      const char *file, int64_t start_line) {
    bool is_new;
    const struct {
        int64_t start_line;
        int32_t strings[4];
    } key = {start_line,
             {string_index(w, name), string_index(w, system_name), string_index(w, file)}};
    const int32_t number = known(w, &w->functions, &key, sizeof key, &is_new);
    if (!is_new)
        return number;
    NEW(w, item, PROFILES(Function), opentelemetry__proto__profiles__v1development__function__init);
    if (item) {
        item->name_strindex = key.strings[0];
        item->system_name_strindex = key.strings[1];
        item->filename_strindex = key.strings[2];
        item->start_line = start_line;
    }
    return listed(w, &w->functions, number, item);
}

int32_t otlp_mapping(struct otlp_writer *w, const struct otlp_mapping *mapping) {
    bool is_new;
    const size_t tail = mapping->attribute_count * sizeof(int32_t);
    const uint64_t head[] = {mapping->start, mapping->limit, mapping->file_offset,
                             (uint64_t)string_index(w, mapping->filename)};
    char *const key = arena_take(&w->arena, sizeof head + tail);
    if (!key)
        return 0;
    memcpy(key, head, sizeof head);
    memcpy(key + sizeof head, mapping->attributes, tail);
    const int32_t number = known(w, &w->mappings, key, sizeof head + tail, &is_new);
    if (!is_new)
        return number;
    NEW(w, item, PROFILES(Mapping), opentelemetry__proto__profiles__v1development__mapping__init);
    if (item) {
        item->memory_start = mapping->start;
        item->memory_limit = mapping->limit;
        item->file_offset = mapping->file_offset;
        item->filename_strindex = (int32_t)head[3];
        item->n_attribute_indices = mapping->attribute_count;
        item->attribute_indices = copy_indices(w, mapping->attributes, mapping->attribute_count);
    }
    return listed(w, &w->mappings, number, item);
}

static PROFILES(Line) *
    *copy_lines(struct otlp_writer *w, const struct otlp_line *lines, size_t count) {
    PROFILES(Line) **const items = arena_take(&w->arena, count * sizeof *items);
    for (size_t i = 0; items && i < count; i++) {
        NEW(w, item, PROFILES(Line), opentelemetry__proto__profiles__v1development__line__init);
        if (!item)
            return NULL;
        item->function_index = lines[i].function;
        item->line = lines[i].line;
        items[i] = item;
    }
    return items;
}

static PROFILES(Location) * new_location(struct otlp_writer *w, int32_t mapping, uint64_t address,
                                         const struct otlp_line *lines, size_t line_count,
                                         int32_t frame_type) {
    NEW(w, item, PROFILES(Location), opentelemetry__proto__profiles__v1development__location__init);
    if (!item)
        return NULL;
    item->mapping_index = mapping;
    item->address = address;
    item->lines = copy_lines(w, lines, line_count);
    item->n_lines = item->lines ? line_count : 0;
    item->attribute_indices = copy_indices(w, &frame_type, 1);
    item->n_attribute_indices = item->attribute_indices ? 1 : 0;
    return item;
}

int32_t otlp_location(struct otlp_writer *w, int32_t mapping, uint64_t address,
                      const struct otlp_line *lines, size_t line_count, int32_t frame_type) {
    bool is_new;
    const size_t words = 2 + 2 * line_count;
    uint64_t *const key = arena_take(&w->arena, words * sizeof *key);
    if (!key)
        return 0;
    key[0] = (uint64_t)(uint32_t)mapping << 32 | (uint32_t)frame_type;
    key[1] = address;
    for (size_t i = 0; i < line_count; i++) {
        key[2 + 2 * i] = (uint64_t)lines[i].function;
        key[3 + 2 * i] = (uint64_t)lines[i].line;
    }
    const int32_t number = known(w, &w->locations, key, words * sizeof *key, &is_new);
    if (!is_new)
        return number;
    return listed(w, &w->locations, number,
                  new_location(w, mapping, address, lines, line_count, frame_type));
}

int32_t otlp_stack(struct otlp_writer *w, const int32_t *locations, size_t count) {
    bool is_new;
    const int32_t number = known(w, &w->stacks, locations, count * sizeof *locations, &is_new);
    if (!is_new)
        return number;
    NEW(w, item, PROFILES(Stack), opentelemetry__proto__profiles__v1development__stack__init);
    if (item) {
        item->location_indices = copy_indices(w, locations, count);
        item->n_location_indices = item->location_indices ? count : 0;
    }
    return listed(w, &w->stacks, number, item);
}

/* --- the resource and the scope --- */

static void add_resource(struct otlp_writer *w, const char *key, COMMON(AnyValue) * value) {
    NEW(w, item, COMMON(KeyValue), opentelemetry__proto__common__v1__key_value__init);
    if (!item)
        return;
    item->key = text(w, key);
    item->value = value;
    arena_list_add(&w->arena, &w->resource, item);
}

void otlp_resource_string(struct otlp_writer *w, const char *key, const char *value) {
    add_resource(w, key, string_value(w, value));
}

void otlp_resource_int(struct otlp_writer *w, const char *key, int64_t value) {
    add_resource(w, key, int_value(w, value));
}

void otlp_scope(struct otlp_writer *w, const char *name, const char *version) {
    w->scope.name = text(w, name);
    w->scope.version = text(w, version);
}

/* --- profiles and samples --- */

static PROFILES(ValueType) *
    new_value_type(struct otlp_writer *w, const char *type, const char *unit) {
    NEW(w, item, PROFILES(ValueType),
        opentelemetry__proto__profiles__v1development__value_type__init);
    if (item) {
        item->type_strindex = string_index(w, type);
        item->unit_strindex = string_index(w, unit);
    }
    return item;
}

struct otlp_profile *otlp_profile(struct otlp_writer *w, const struct otlp_profile_type *type,
                                  const uint8_t id[16], uint64_t time_unix_nano,
                                  uint64_t duration_nano) {
    struct otlp_profile *const profile = arena_take(&w->arena, sizeof *profile);
    if (!profile || !arena_list_add(&w->arena, &w->profiles, profile))
        return NULL;
    PROFILES(Profile) *const message = &profile->message;
    opentelemetry__proto__profiles__v1development__profile__init(message);
    message->sample_type = new_value_type(w, type->type, type->unit);
    message->period_type = new_value_type(w, type->period_type, type->period_unit);
    message->period = type->period;
    message->time_unix_nano = time_unix_nano;
    message->duration_nano = duration_nano;
    message->profile_id.data = (uint8_t *)arena_copy(&w->arena, id, 16);
    message->profile_id.len = message->profile_id.data ? 16 : 0;
    return profile;
}

void otlp_profile_attribute(struct otlp_writer *w, struct otlp_profile *profile,
                            int32_t attribute) {
    arena_list_add(&w->arena, &profile->attributes, (void *)(intptr_t)attribute);
}

static int by_number(const void *a, const void *b) {
    const int32_t left = *(const int32_t *)a;
    const int32_t right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

static void new_sample(struct otlp_writer *w, struct otlp_profile *profile, const int32_t *identity,
                       size_t attribute_count, int64_t value) {
    NEW(w, item, PROFILES(Sample), opentelemetry__proto__profiles__v1development__sample__init);
    int64_t *const values = arena_take(&w->arena, sizeof *values);
    if (!item || !values)
        return;
    *values = value;
    item->stack_index = identity[0];
    item->attribute_indices = copy_indices(w, identity + 1, attribute_count);
    item->n_attribute_indices = attribute_count;
    item->values = values;
    item->n_values = 1;
    arena_list_add(&w->arena, &profile->samples, item);
}

void otlp_sample(struct otlp_writer *w, struct otlp_profile *profile, int32_t stack,
                 const int32_t *attributes, size_t attribute_count, int64_t value) {
    int32_t identity[1 + MAX_SAMPLE_ATTRIBUTES] = {stack};
    bool is_new;
    if (attribute_count > MAX_SAMPLE_ATTRIBUTES)
        attribute_count = MAX_SAMPLE_ATTRIBUTES;
    if (attribute_count)
        memcpy(identity + 1, attributes, attribute_count * sizeof *attributes);
    qsort(identity + 1, attribute_count, sizeof *identity, by_number);
    const int32_t number = intern(&w->arena, &profile->identities, identity,
                                  (1 + attribute_count) * sizeof *identity, &is_new);
    if (is_new) {
        new_sample(w, profile, identity, attribute_count, value);
    } else if (number >= 0 && (size_t)number < profile->samples.count) {
        PROFILES(Sample) *const sample = profile->samples.items[number];
        sample->values[0] += value;
    }
}

/* --- opening, closing, packing --- */

/* Item 0 of each table is its zero value, whatever is listed later. */
static void add_zero_values(struct otlp_writer *w) {
    bool is_new;
    NEW(w, mapping, PROFILES(Mapping),
        opentelemetry__proto__profiles__v1development__mapping__init);
    NEW(w, location, PROFILES(Location),
        opentelemetry__proto__profiles__v1development__location__init);
    NEW(w, function, PROFILES(Function),
        opentelemetry__proto__profiles__v1development__function__init);
    NEW(w, attribute, PROFILES(KeyValueAndUnit),
        opentelemetry__proto__profiles__v1development__key_value_and_unit__init);
    listed(w, &w->mappings, known(w, &w->mappings, "0", 1, &is_new), mapping);
    listed(w, &w->locations, known(w, &w->locations, "0", 1, &is_new), location);
    listed(w, &w->functions, known(w, &w->functions, "0", 1, &is_new), function);
    listed(w, &w->attributes, known(w, &w->attributes, "0", 1, &is_new), attribute);
    (void)string_index(w, "");
    (void)otlp_stack(w, NULL, 0);
}

struct otlp_writer *otlp_writer_open(void) {
    struct otlp_writer *const w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    opentelemetry__proto__common__v1__instrumentation_scope__init(&w->scope);
    add_zero_values(w);
    if (!w->arena.failed)
        return w;
    otlp_writer_close(w);
    return NULL;
}

void otlp_writer_close(struct otlp_writer *w) {
    if (!w)
        return;
    arena_free(&w->arena);
    free(w);
}

static void **list_of_one(struct otlp_writer *w, void *item) {
    void **const items = arena_take(&w->arena, sizeof *items);
    if (items)
        *items = item;
    return items;
}

static PROFILES(ProfilesDictionary) * dictionary_of(struct otlp_writer *w) {
    NEW(w, dictionary, PROFILES(ProfilesDictionary),
        opentelemetry__proto__profiles__v1development__profiles_dictionary__init);
    NEW(w, link, PROFILES(Link), opentelemetry__proto__profiles__v1development__link__init);
    if (!dictionary || !link)
        return NULL;
    dictionary->n_mapping_table = w->mappings.items.count;
    dictionary->mapping_table = (PROFILES(Mapping) **)w->mappings.items.items;
    dictionary->n_location_table = w->locations.items.count;
    dictionary->location_table = (PROFILES(Location) **)w->locations.items.items;
    dictionary->n_function_table = w->functions.items.count;
    dictionary->function_table = (PROFILES(Function) **)w->functions.items.items;
    dictionary->n_link_table = 1;
    dictionary->link_table = (PROFILES(Link) **)list_of_one(w, link);
    dictionary->n_string_table = w->strings.items.count;
    dictionary->string_table = (char **)w->strings.items.items;
    dictionary->n_attribute_table = w->attributes.items.count;
    dictionary->attribute_table = (PROFILES(KeyValueAndUnit) **)w->attributes.items.items;
    dictionary->n_stack_table = w->stacks.items.count;
    dictionary->stack_table = (PROFILES(Stack) **)w->stacks.items.items;
    return dictionary;
}

static PROFILES(Profile) * finish_profile(struct otlp_writer *w, struct otlp_profile *profile) {
    PROFILES(Profile) *const message = &profile->message;
    const size_t count = profile->attributes.count;
    message->n_samples = profile->samples.count;
    message->samples = (PROFILES(Sample) **)profile->samples.items;
    message->attribute_indices = arena_take(&w->arena, (count + 1) * sizeof(int32_t));
    for (size_t i = 0; message->attribute_indices && i < count; i++)
        message->attribute_indices[i] = (int32_t)(intptr_t)profile->attributes.items[i];
    message->n_attribute_indices = message->attribute_indices ? count : 0;
    return message;
}

static PROFILES(ScopeProfiles) * scope_of(struct otlp_writer *w) {
    const size_t count = w->profiles.count;
    NEW(w, scope, PROFILES(ScopeProfiles),
        opentelemetry__proto__profiles__v1development__scope_profiles__init);
    PROFILES(Profile) **const profiles = arena_take(&w->arena, (count + 1) * sizeof *profiles);
    if (!scope || !profiles)
        return NULL;
    for (size_t i = 0; i < count; i++)
        profiles[i] = finish_profile(w, w->profiles.items[i]);
    scope->scope = &w->scope;
    scope->profiles = profiles;
    scope->n_profiles = count;
    return scope;
}

static PROFILES(ResourceProfiles) * resource_profiles_of(struct otlp_writer *w) {
    NEW(w, resource, RESOURCE(Resource), opentelemetry__proto__resource__v1__resource__init);
    NEW(w, all, PROFILES(ResourceProfiles),
        opentelemetry__proto__profiles__v1development__resource_profiles__init);
    if (!resource || !all)
        return NULL;
    resource->attributes = (COMMON(KeyValue) **)w->resource.items;
    resource->n_attributes = w->resource.count;
    all->resource = resource;
    all->scope_profiles = (PROFILES(ScopeProfiles) **)list_of_one(w, scope_of(w));
    all->n_scope_profiles = 1;
    return all;
}

/* NULL: no memory, now or before. */
static SERVICE(ExportProfilesServiceRequest) * request_of(struct otlp_writer *w) {
    NEW(w, request, SERVICE(ExportProfilesServiceRequest),
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__init);
    if (!request)
        return NULL;
    request->resource_profiles =
        (PROFILES(ResourceProfiles) **)list_of_one(w, resource_profiles_of(w));
    request->n_resource_profiles = 1;
    request->dictionary = dictionary_of(w);
    return w->arena.failed ? NULL : request;
}

uint8_t *otlp_writer_pack(struct otlp_writer *w, size_t *size) {
    const SERVICE(ExportProfilesServiceRequest) *const request = request_of(w);
    if (!request)
        return NULL;
    *size = protobuf_c_message_get_packed_size(&request->base);
    uint8_t *const bytes = malloc(*size + 1);
    if (bytes)
        protobuf_c_message_pack(&request->base, bytes);
    return bytes;
}

uint8_t *otlp_writer_json(struct otlp_writer *w, size_t *size) {
    const SERVICE(ExportProfilesServiceRequest) *const request = request_of(w);
    return request ? (uint8_t *)otlp_json(&request->base, size) : NULL;
}
