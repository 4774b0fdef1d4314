/* A bounded set of attributes by key, each with a text, a whole number, a number or a truth value.
 *
 * The set owns copies of what it is given. What is too much, or cannot be kept for want of memory,
 * is left out: attributes say who sends, and the rest of a message stands without them.
 * Context: flush.
 */
#ifndef OTELPROF_ATTRIBUTE_SET_H
#define OTELPROF_ATTRIBUTE_SET_H

#include "otlp_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Receivers turn attributes into labels, of which Pyroscope takes 30. */
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

/* NULL: not in it. */
const struct attribute *attributes_find(const struct attribute_set *set, const char *key);

/* Takes the place of the attribute of that key. A text that is NULL changes nothing. */
void attributes_set(struct attribute_set *set, const char *key, struct attribute_value value);
void attributes_set_text(struct attribute_set *set, const char *key, const char *text);
void attributes_set_int(struct attribute_set *set, const char *key, int64_t integer);

/* Frees what is in it; it is empty and usable again. */
void attributes_clear(struct attribute_set *set);

/* Writes one attribute of the resource. */
void attribute_write(const struct attribute *attribute, struct otlp_writer *writer);

#endif
