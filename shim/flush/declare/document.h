/* Reads a YAML document, parsed by libyaml: mappings, sequences, and scalars whose references to
 * environment variables are replaced.
 *
 * An alias refers to its anchor's node and is never copied, so memory is bounded by the file's
 * size. Readers descend to a fixed depth, so an alias to an enclosing node cannot cause endless
 * recursion.
 * Context: flush; under a guard, because memory may run out.
 */
#ifndef OTELPROF_DOCUMENT_H
#define OTELPROF_DOCUMENT_H

#include "scalar.h"
#include "substitution.h"

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

enum { VALUE_BYTES = 8192 };

/* Describes why a file is refused as a whole. `what` is a constant. */
struct refusal {
    const char *what; /* NULL: not refused */
    size_t line;      /* line of the error, from 1; 0: unknown */
};

struct document {
    yaml_document_t yaml;
    substitution_look_up *look_up;
    struct refusal
        refusal; /* also set by an access that finds a malformed value or a duplicate key */
};

/* Parses the text. Returns false if it is not YAML, has more than one document, or there is no
 * memory; `refusal` says why. After true the caller must call document_close(). */
bool document_open(struct document *document, const char *text, size_t size,
                   substitution_look_up *look_up);
void document_close(struct document *document);

/* document_root() returns the top node, or NULL if there is none; document_line() returns a node's
 * line, from 1. */
yaml_node_t *document_root(struct document *document);
size_t document_line(const yaml_node_t *node);

/* Iterate over the pairs of a mapping and the items of a sequence; `index` counts from 0. Return
 * false past the end, or if the node is of another kind. A key that is no text is returned as "".
 */
bool document_pair(struct document *document, const yaml_node_t *mapping, size_t index,
                   const char **key, yaml_node_t **value);
bool document_item(struct document *document, const yaml_node_t *sequence, size_t index,
                   yaml_node_t **item);
/* Returns the value of a key, or NULL. Refuses the file if the key occurs twice, because the
 * intended value is unknown. */
yaml_node_t *document_child(struct document *document, const yaml_node_t *mapping, const char *key);
/* Refuses the file because of a duplicate key with this value. */
void document_refuse_twice(struct document *document, const yaml_node_t *value);

struct value {
    char text[VALUE_BYTES];
    struct scalar scalar; /* SCALAR_TEXT if quoted */
};

/* Reads a scalar. Returns false for another kind of node, a text that is too long or has a NUL
 * byte, and a malformed reference. */
bool document_value(struct document *document, const yaml_node_t *node, struct value *value);

#endif
