/* Reads the message that an application publishes about itself (process_context.h): its resource,
 * and the names of the keys that its threads' contexts have by number (common/sample_context.h).
 *
 * The bytes are not trusted. Only values that fit a label are read: a text, an integer, a number or
 * a truth value; lists and the like are skipped. A key that is empty, longer than
 * CONTEXT_KEY_BYTES, not UTF-8 or has control characters is skipped, and so is a text that is
 * empty, longer than CONTEXT_TEXT_BYTES or not UTF-8. Of two attributes with one key, the last
 * counts.
 *
 * The names are in an attribute of the message, `threadlocal.attribute_key_map`; an invalid name
 * keeps its index but counts as missing. The names are used only with a known
 * `threadlocal.schema_version`, because they may have another meaning in another version. Context:
 * flush.
 */
#ifndef OTELPROF_CONTEXT_PAYLOAD_H
#define OTELPROF_CONTEXT_PAYLOAD_H

#include "attribute_set.h"

enum {
    KEY_NAMES = 256,                  /* number of names: an index is one byte */
    CONTEXT_PAYLOAD_BYTES = 64 << 10, /* limit of a message; no resource needs more */
    CONTEXT_KEY_BYTES = 256,
    CONTEXT_TEXT_BYTES = 2048, /* Pyroscope's limit for a label's value */
};

/* Adds the attributes to `*set`. Returns false, and adds nothing, if the bytes are not such a
 * message or are too large, or if memory is missing. An empty message is valid and has no
 * attributes. */
bool context_payload_read(const uint8_t *bytes, size_t size, struct attribute_set *set);

/* Holds the names of keys by index; a missing name is NULL. */
struct key_names {
    char *of[KEY_NAMES];
};

/* Replaces `*names` by the names in the message, or by none if it has no usable names. */
void context_payload_names(const uint8_t *bytes, size_t size, struct key_names *names);
void key_names_clear(struct key_names *names);

/* Returns true if a text is a valid key: not empty, at most CONTEXT_KEY_BYTES, UTF-8, no control
 * characters. */
bool is_context_key(const char *text);

#endif
