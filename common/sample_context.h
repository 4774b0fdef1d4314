/* Describes the context of a thread's work at the moment of a sample: a span of a trace, and
 * attributes (labels).
 *
 * The reader in the signal handler makes a context from the data that the program publishes about
 * its thread; a sample's identity holds it; the exporter turns it into a link and attributes. A
 * context is bounded, so that it can be compared and kept as bytes: entries that do not fit are
 * left out and counted (DROP_CONTEXT_CUT).
 *
 * `attributes` holds entries without padding, `attribute_bytes` in all:
 *   {key_bytes, value_bytes, key, value}     a key by its name; key_bytes is not 0
 *   {0, value_bytes, key_index, value}       a key by its place in the process context's list of
 *                                            names (OTEP 4947: threadlocal.attribute_key_map)
 * Each length, and the index, is one byte. A key appears only once.
 */
#ifndef OTELPROF_SAMPLE_CONTEXT_H
#define OTELPROF_SAMPLE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    TRACE_ID_BYTES = 16,
    SPAN_ID_BYTES = 8,
    CONTEXT_ATTRIBUTES = 16,       /* largest number of entries */
    CONTEXT_ATTRIBUTE_BYTES = 480, /* largest size of all entries */
    CONTEXT_WORDS = (32 + CONTEXT_ATTRIBUTE_BYTES) / 8,
};

struct sample_context {
    uint8_t trace_id[TRACE_ID_BYTES];
    uint8_t span_id[SPAN_ID_BYTES]; /* trace and span id of zeros: no span */
    uint32_t attribute_bytes;
    uint32_t reserved; /* always 0 */
    uint8_t attributes[CONTEXT_ATTRIBUTE_BYTES];
};
_Static_assert(sizeof(struct sample_context) == CONTEXT_WORDS * 8, "compared as words");

/* Holds the times of the first and the last sample with a context (CLOCK_MONOTONIC, ns). All 0: the
 * times are not requested, or not known. */
struct span_seen {
    uint64_t first_nano;
    uint64_t last_nano;
};

/* Describes an entry of `attributes`. */
struct context_attribute {
    const uint8_t *key; /* NULL: the key is given by `key_index` */
    const uint8_t *value;
    uint8_t key_bytes;
    uint8_t key_index; /* valid if `key` is NULL */
    uint8_t value_bytes;
};

/* Returns how many words of the context are in use; the bytes behind the attributes in the last
 * word must be 0. Context: any. Async-signal-safe: yes. */
static inline uint32_t context_words(const struct sample_context *context) {
    return (uint32_t)(offsetof(struct sample_context, attributes) + context->attribute_bytes + 7) /
           8;
}

/* Returns whether the context has a span: both ids must be set (W3C Trace Context). Context:
 * any. */
static inline bool context_has_span(const struct sample_context *context) {
    static const uint8_t none[TRACE_ID_BYTES];
    return memcmp(context->trace_id, none, TRACE_ID_BYTES) != 0 &&
           memcmp(context->span_id, none, SPAN_ID_BYTES) != 0;
}

/* Extends `seen` by the times of `other`. Context: any. Async-signal-safe: yes. */
static inline void span_seen_add(struct span_seen *seen, struct span_seen other) {
    if (!other.last_nano)
        return;
    if (!seen->last_nano || other.first_nano < seen->first_nano)
        seen->first_nano = other.first_nano;
    if (other.last_nano > seen->last_nano)
        seen->last_nano = other.last_nano;
}

/* Reads the entry at *at and moves *at behind it. Returns false if there is none, or it is
 * incomplete. Context: any. */
static inline bool context_next_attribute(const struct sample_context *context, uint32_t *at,
                                          struct context_attribute *attribute) {
    const uint32_t left = context->attribute_bytes > *at ? context->attribute_bytes - *at : 0;
    const uint8_t *const entry = context->attributes + *at;
    if (left < 2)
        return false;
    const uint32_t key_bytes = entry[0] ? entry[0] : 1;
    const uint32_t size = 2 + key_bytes + entry[1];
    if (size > left)
        return false;
    *attribute = (struct context_attribute){.key = entry[0] ? entry + 2 : NULL,
                                            .value = entry + 2 + key_bytes,
                                            .key_bytes = entry[0],
                                            .key_index = entry[2],
                                            .value_bytes = entry[1]};
    *at += size;
    return true;
}

#endif
