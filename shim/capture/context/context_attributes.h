/* Puts attributes into a context, within its bounds (sample_context.h).
 *
 * Context of all: signal. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CONTEXT_ATTRIBUTES_H
#define OTELPROF_CONTEXT_ATTRIBUTES_H

#include "sample_context.h"

#include <stdbool.h>
#include <stdint.h>

struct context_attributes {
    /* the context that gets the attributes; it must have none at first */
    struct sample_context *context;
    uint32_t count;
};

/* Adds `attribute` as an entry. Returns false if the context has no room for it. */
bool context_attributes_add(struct context_attributes *attributes,
                            const struct context_attribute *attribute);

/* Returns true if there is an entry with the key of `attribute`. */
bool context_attributes_have(const struct context_attributes *attributes,
                             const struct context_attribute *attribute);

/* Takes out the entry with the key of `attribute`, if there is one. */
void context_attributes_remove(struct context_attributes *attributes,
                               const struct context_attribute *attribute);

/* Clears the bytes behind the last entry, which a comparison of contexts includes. Must be called
 * last. */
void context_attributes_end(const struct context_attributes *attributes);

#endif
