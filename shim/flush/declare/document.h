/* A YAML document, by libyaml, as far as a configuration needs it: mappings, sequences, and scalars
 * whose references to environment variables are replaced.
 *
 * An alias is the node that it names, never a copy of it, so that no file grows beyond its size.
 * The readers above go to a fixed depth and no further, so an alias to a node that holds it does
 * not make them turn in a circle. Context: flush; where memory may run out, under a guard.
 */
#ifndef OTELPROF_DOCUMENT_H
#define OTELPROF_DOCUMENT_H

#include "scalar.h"
#include "substitution.h"

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

enum { VALUE_BYTES = 8192 };

/* Why a file is refused as a whole. `what` is a constant. */
struct refusal {
    const char *what; /* NULL: it is not */
    size_t line;      /* 0: not known */
};

struct document {
    yaml_document_t yaml;
    substitution_look_up *look_up;
    struct refusal refusal; /* for a value or a key that was asked for, too */
};

/* false: it is not YAML, more than one document, or no memory; see `refusal`. Otherwise close it.
 */
bool document_open(struct document *document, const char *text, size_t size,
                   substitution_look_up *look_up);
void document_close(struct document *document);

/* The first node; NULL: there is none. */
yaml_node_t *document_root(struct document *document);
size_t document_line(const yaml_node_t *node);

/* The pairs of a mapping, and the items of a sequence, one after the other; `index` counts from 0.
 * false: there is no more, or it is no such node. A key that is no text is "". */
bool document_pair(struct document *document, const yaml_node_t *mapping, size_t index,
                   const char **key, yaml_node_t **value);
bool document_item(struct document *document, const yaml_node_t *sequence, size_t index,
                   yaml_node_t **item);
/* The value of that key; NULL: there is none. The file is refused where there are two: which of
 * them is meant, nobody knows. */
yaml_node_t *document_child(struct document *document, const yaml_node_t *mapping, const char *key);
/* Refuses it for that value, of a key that had one. */
void document_refuse_twice(struct document *document, const yaml_node_t *value);

struct value {
    char text[VALUE_BYTES];
    struct scalar scalar; /* SCALAR_TEXT where it is quoted */
};

/* false: it is no scalar, or too long, or has a 0 byte, or a malformed reference. */
bool document_value(struct document *document, const yaml_node_t *node, struct value *value);

#endif
