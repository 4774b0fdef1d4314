/* Holds a bounded set of attributes by key, each with a text, an integer, a number or a truth
 * value.
 *
 * The set owns copies of its keys and texts. Attributes beyond the bound, or without memory, are
 * left out: they identify the sender, and the rest of a message is valid without them. Context:
 * flush.
 */
#ifndef OTELPROF_ATTRIBUTE_SET_H
#define OTELPROF_ATTRIBUTE_SET_H

#include "otlp_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds the set. It allows more attributes than receivers take: Pyroscope turns attributes into
 * labels and takes 30. */
enum { MAX_ATTRIBUTES = 64 };

enum attribute_kind { ATTRIBUTE_TEXT, ATTRIBUTE_INT, ATTRIBUTE_DOUBLE, ATTRIBUTE_BOOL };

struct attribute_value {
    enum attribute_kind kind;
    union {
        const char *text;
        int64_t integer;
        double real;
        bool truth;
    };
};

struct attribute {
    char *key;
    struct attribute_value value;
};

struct attribute_set {
    struct attribute items[MAX_ATTRIBUTES];
    size_t count;
};

/* Returns the attribute of a key; NULL if the key is not in the set. */
const struct attribute *attributes_find(const struct attribute_set *set, const char *key);

/* Set or replace the attribute of that key. A NULL text changes nothing. */
void attributes_set(struct attribute_set *set, const char *key, struct attribute_value value);
void attributes_set_text(struct attribute_set *set, const char *key, const char *text);
void attributes_set_int(struct attribute_set *set, const char *key, int64_t integer);

/* Frees the contents; the set is empty and usable again. */
void attributes_clear(struct attribute_set *set);

/* Writes one attribute into the resource of the request. */
void attribute_write(const struct attribute *attribute, struct otlp_writer *writer);

#endif
