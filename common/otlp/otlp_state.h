/* Holds the items that a writer has listed so far: otlp_writer.c lists them, otlp_pack.c makes the
 * message of them. The resource and the scope are kept as protobuf-c's structs. Context: flush. */
#ifndef OTELPROF_OTLP_STATE_H
#define OTELPROF_OTLP_STATE_H

#include "arena.h"
#include "intern.h"
#include "otlp_writer.h"
#include "profiles_service.pb-c.h"
#include "wire.h"

enum { ID_BYTES = 16 };

/* Indexes of a sample's identity's parts among its numbers. */
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
    struct intern identities; /* a sample's stack, link and attributes, int32_t each */
    int64_t *values;          /* by number of the identity */
    size_t value_room;
    struct intern attributes; /* int32_t */
};

/* A table is the index of its items: two items are the same exactly if their encodings are. A stack
 * is kept as its locations' numbers, since these are final only when all are known. */
struct otlp_writer {
    struct arena arena;
    struct intern strings, attributes, functions, mappings, locations, stacks, links;
    struct arena_list profiles; /* struct otlp_profile */
    struct arena_list resource; /* KeyValue */
    InstrumentationScope scope;
    char *schema_url; /* NULL: none */
    struct wire item; /* being encoded */
};

#endif
