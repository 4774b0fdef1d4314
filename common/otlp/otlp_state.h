/* Holds the items that a writer has listed so far: otlp_writer.c lists them, otlp_pack.c makes the
 * message from them, and encode/pprof_tables.c makes pprof's tables. The resource and the scope are
 * kept as protobuf-c's structs. Context: flush. */
#ifndef OTELPROF_OTLP_STATE_H
#define OTELPROF_OTLP_STATE_H

#include "arena.h"
#include "intern.h"
#include "otlp_writer.h"
#include "profiles_service.pb-c.h"
#include "sample_context.h"
#include "wire.h"

#include <stddef.h>

enum { ID_BYTES = 16 };

/* Lists the indexes of the parts of a sample's identity. */
enum { IDENTITY_STACK, IDENTITY_LINK, IDENTITY_ATTRIBUTES };

typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValue;
typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;
typedef Opentelemetry__Proto__Common__V1__InstrumentationScope InstrumentationScope;

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
    struct intern identities; /* a sample's stack, link and attributes, each an int32_t */
    int64_t *values;          /* values by number of the identity */
    size_t value_room;
    struct intern attributes; /* sorted numbers of attributes, each an int32_t */
};

/* Describe the items of the tables. Items are byte strings without padding, so that two items are
 * equal exactly if their bytes are equal. An item refers to another item by its number; number 0 of
 * each table is its zero value. */
struct listed_function {
    int32_t name;
    int32_t system_name;
    int32_t file;
    int32_t start_line;
};

struct listed_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t file_offset;
    int32_t filename;
    int32_t attributes[]; /* continues up to the item's end */
};
enum { LISTED_MAPPING_BYTES = offsetof(struct listed_mapping, attributes) };

struct listed_location {
    uint64_t address;
    int32_t mapping;
    int32_t frame_type;
    struct otlp_line lines[]; /* continues up to the item's end */
};

struct listed_link {
    uint8_t trace_id[ID_BYTES];
    uint8_t span_id[SPAN_ID_BYTES];
};

/* Lists field numbers of AnyValue. */
enum { ANY_STRING = 1, ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4, ANY_ARRAY = 5 };

struct listed_attribute {
    int64_t number; /* value of ANY_BOOL and ANY_INT; the bits of ANY_DOUBLE */
    int32_t key;
    int32_t unit;
    uint32_t form; /* ANY_* */
    /* continues up to the item's end; ANY_STRING: one text; ANY_ARRAY: each text with its NUL */
    char text[];
};
enum { LISTED_ATTRIBUTE_BYTES = offsetof(struct listed_attribute, text) };

/* Holds a resource that was ended: its attributes, and the number of profiles up to its last one.
 */
struct ended_resource {
    struct arena_list attributes;
    size_t profiles;
};

/* Holds the lists. A stack is a list of the numbers of its locations. In the message locations get
 * other numbers, which are final only when all stacks are known. */
struct otlp_writer {
    struct arena arena;
    struct intern strings, attributes, functions, mappings, locations, stacks, links;
    struct arena_list profiles; /* list of struct otlp_profile */
    struct arena_list resource; /* list of KeyValue */
    struct arena_list earlier;  /* list of struct ended_resource */
    InstrumentationScope scope;
    char *schema_url; /* NULL: none */
    struct wire item; /* the item that is being listed */
};

static inline const char *listed_text(const struct otlp_writer *writer, int32_t string) {
    return writer->strings.keys[string].bytes;
}

#endif
