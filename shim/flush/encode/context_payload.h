/* The message that an application publishes about itself (process_context.h): its resource, and the
 * names of the keys that its threads' contexts have by number (common/sample_context.h).
 *
 * The bytes are a stranger's. Taken is what a label can be made of: a text, a number or a truth
 * value under a key; lists and the like are passed over. A key that is empty, longer than
 * CONTEXT_KEY_BYTES, not UTF-8 or has control characters is passed over, and so is a text that is
 * empty, longer than CONTEXT_TEXT_BYTES or not UTF-8. Where two have one key, the last counts.
 *
 * The names stand in an attribute of the message, `threadlocal.attribute_key_map`; a name that
 * could not be a key keeps its place, and is none. They count only beside a
 * `threadlocal.schema_version` that is known here: another one may mean something else by them.
 * Context: flush.
 */
#ifndef OTELPROF_CONTEXT_PAYLOAD_H
#define OTELPROF_CONTEXT_PAYLOAD_H

#include "attribute_set.h"

enum {
    KEY_NAMES = 256,                  /* an index is one byte */
    CONTEXT_PAYLOAD_BYTES = 64 << 10, /* no resource needs more */
    CONTEXT_KEY_BYTES = 256,
    CONTEXT_TEXT_BYTES = 2048, /* as Pyroscope has it for a label's value */
};

/* Adds the attributes to `*set`. false: not such a message, too large, or no memory; nothing was
 * added. An empty message has no attributes and is one. */
bool context_payload_read(const uint8_t *bytes, size_t size, struct attribute_set *set);

/* The names of keys by index; those that are missing are NULL. */
struct key_names {
    char *of[KEY_NAMES];
};

/* Replaces `*names` by those of the message; none, if it has none that can be used. */
void context_payload_names(const uint8_t *bytes, size_t size, struct key_names *names);
void key_names_clear(struct key_names *names);

/* Whether a text may be a key: not empty, at most CONTEXT_KEY_BYTES, UTF-8, no control characters.
 */
bool is_context_key(const char *text);

#endif
