/* The message that an application publishes about itself (process_context.h): its resource.
 *
 * The bytes are a stranger's. Taken is what a label can be made of: a text, a number or a truth
 * value under a key; lists and the like are passed over. A key that is empty, longer than
 * CONTEXT_KEY_BYTES, not UTF-8 or has control characters is passed over, and so is a text that is
 * empty, longer than CONTEXT_TEXT_BYTES or not UTF-8. Where two have one key, the last counts.
 * Context: flush.
 */
#ifndef OTELPROF_CONTEXT_PAYLOAD_H
#define OTELPROF_CONTEXT_PAYLOAD_H

#include "attribute_set.h"

enum {
    CONTEXT_PAYLOAD_BYTES = 64 << 10, /* no resource needs more */
    CONTEXT_KEY_BYTES = 256,
    CONTEXT_TEXT_BYTES = 2048, /* as Pyroscope has it for a label's value */
};

/* Adds the attributes to `*set`. false: not such a message, too large, or no memory; nothing was
 * added. An empty message has no attributes and is one. */
bool context_payload_read(const uint8_t *bytes, size_t size, struct attribute_set *set);

#endif
