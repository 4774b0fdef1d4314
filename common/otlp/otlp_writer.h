/* Builds one ExportProfilesServiceRequest: a resource, one scope, several profiles, and the
 * dictionary that they share. There may be several resources, each with its own profiles.
 *
 * The writer keeps the rules that a receiver may enforce: every dictionary table begins with its
 * zero value, no item is listed twice, one sample per identity (stack, link and set of attributes),
 * indexes in range. Its caller lists only items that a sample refers to, so there are no orphans,
 * either. Equal calls give equal bytes: items are in the order of the calls; locations are sorted
 * by the number of stacks that have them, so that frequent ones have short numbers. protobuf-c
 * packs the resource, the scope and each profile's own fields, wire.h the rest. otlp_writer_close()
 * frees all memory. Functions that return an index return 0 ("not set") if there is no memory; then
 * otlp_writer_pack() fails. Field numbers and rules: proto/profiles.proto and OpenTelemetry's
 * profiles data model. Context: flush.
 */
#ifndef OTELPROF_OTLP_WRITER_H
#define OTELPROF_OTLP_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct otlp_writer;
struct otlp_profile;

struct otlp_line {
    int32_t function;
    int32_t line; /* counted from 1; 0: not known */
};

struct otlp_mapping {
    uint64_t start; /* addresses of the object, as in its ELF file */
    uint64_t limit;
    uint64_t file_offset;
    const char *filename;
    const int32_t *attributes;
    size_t attribute_count;
};

struct otlp_profile_type {
    const char *type; /* "samples", "alloc_space", ... */
    const char *unit;
    const char *period_type;
    const char *period_unit;
    int64_t period;
};

/* Opens a writer. Returns NULL without memory. */
struct otlp_writer *otlp_writer_open(void);
void otlp_writer_close(struct otlp_writer *writer);

/* --- the resource and the scope --- */
void otlp_resource_string(struct otlp_writer *writer, const char *key, const char *value);
void otlp_resource_int(struct otlp_writer *writer, const char *key, int64_t value);
void otlp_resource_double(struct otlp_writer *writer, const char *key, double value);
void otlp_resource_bool(struct otlp_writer *writer, const char *key, bool value);
void otlp_scope(struct otlp_writer *writer, const char *name, const char *version);
/* Ends the resource: the attributes and profiles that follow belong to another one. */
void otlp_next_resource(struct otlp_writer *writer);
/* Sets the version of the conventions that the attributes' names follow. */
void otlp_schema(struct otlp_writer *writer, const char *url);

/* --- the dictionary: each returns the index of the item, old or new --- */
int32_t otlp_attribute_string(struct otlp_writer *writer, const char *key, const char *value);
int32_t otlp_attribute_int(struct otlp_writer *writer, const char *key, int64_t value,
                           const char *unit);
int32_t otlp_attribute_double(struct otlp_writer *writer, const char *key, double value,
                              const char *unit);
int32_t otlp_attribute_bool(struct otlp_writer *writer, const char *key, bool value);
int32_t otlp_attribute_strings(struct otlp_writer *writer, const char *key,
                               const char *const *values, size_t count);
int32_t otlp_function(struct otlp_writer *writer, const char *name, const char *system_name,
                      const char *file, int32_t start_line);
int32_t otlp_mapping(struct otlp_writer *writer, const struct otlp_mapping *mapping);
/* Lists a location. `lines`: inlined callee first. `frame_type`: index of an attribute. */
int32_t otlp_location(struct otlp_writer *writer, int32_t mapping, uint64_t address,
                      const struct otlp_line *lines, size_t line_count, int32_t frame_type);
int32_t otlp_stack(struct otlp_writer *writer, const int32_t *locations, size_t count);
int32_t otlp_link(struct otlp_writer *writer, const uint8_t trace_id[16], const uint8_t span_id[8]);

/* --- profiles, in the order of the calls --- */
/* Begins a profile. `id`: 16 bytes. `expected`: number of samples to make room for at once; more
 * may follow. Returns NULL without memory. */
struct otlp_profile *otlp_profile(struct otlp_writer *writer, const struct otlp_profile_type *type,
                                  const uint8_t id[16], uint64_t time_unix_nano,
                                  uint64_t duration_nano, size_t expected);
void otlp_profile_attribute(struct otlp_writer *writer, struct otlp_profile *profile,
                            int32_t attribute);
/* Bounds the attributes of one sample. */
enum { OTLP_SAMPLE_ATTRIBUTES = 40 };
/* Holds the properties that distinguish a sample from the others of a profile. */
struct otlp_identity {
    int32_t stack;
    int32_t link;              /* 0: no link */
    const int32_t *attributes; /* at most OTLP_SAMPLE_ATTRIBUTES, in any order */
    size_t attribute_count;
};
/* Adds `value` to the sample of this identity. */
void otlp_sample(struct otlp_writer *writer, struct otlp_profile *profile,
                 const struct otlp_identity *identity, int64_t value);

/* Returns the request as protobuf, malloc'ed; the caller frees it. NULL: there was no memory at
 * some point. */
uint8_t *otlp_writer_pack(struct otlp_writer *writer, size_t *size);
/* Returns the same request as JSON (otlp_json.h). */
uint8_t *otlp_writer_json(struct otlp_writer *writer, size_t *size);

#endif
