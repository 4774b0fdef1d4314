#include "document.h"

#include <string.h>

static const char *problem_of(const yaml_parser_t *parser) {
    switch (parser->error) {
    case YAML_MEMORY_ERROR:
        return "there is no memory to read it";
    case YAML_READER_ERROR:
        return "is no text in UTF-8 or UTF-16";
    default:
        return "is not well-formed YAML";
    }
}

static void document_refuse(struct document *document, const char *what, size_t line) {
    if (!document->refusal.what)
        document->refusal = (struct refusal){what, line};
}

/* Refuses a file with a second document, which is not read and might name values to hide. */
static bool is_the_only_one(struct document *document, yaml_parser_t *parser) {
    yaml_document_t next;
    if (!yaml_parser_load(parser, &next)) {
        document_refuse(document, problem_of(parser), parser->problem_mark.line + 1);
        return false;
    }
    const yaml_node_t *const root = yaml_document_get_root_node(&next);
    if (root)
        document_refuse(document, "has a second document", document_line(root));
    yaml_document_delete(&next);
    return !root;
}

bool document_open(struct document *document, const char *text, size_t size,
                   substitution_look_up *look_up) {
    yaml_parser_t parser;
    *document = (struct document){.look_up = look_up};
    if (!yaml_parser_initialize(&parser)) {
        document->refusal.what = "there is no memory to read it";
        return false;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    const bool loaded = yaml_parser_load(&parser, &document->yaml);
    if (!loaded)
        document_refuse(document, problem_of(&parser), parser.problem_mark.line + 1);
    const bool alone = loaded && is_the_only_one(document, &parser);
    if (loaded && !alone)
        document_close(document);
    yaml_parser_delete(&parser);
    return alone;
}

void document_close(struct document *document) {
    yaml_document_delete(&document->yaml);
}

yaml_node_t *document_root(struct document *document) {
    return yaml_document_get_root_node(&document->yaml);
}

size_t document_line(const yaml_node_t *node) {
    return node->start_mark.line + 1;
}

/* --- traversal --- */

static yaml_node_t *node_at(struct document *document, int index) {
    return yaml_document_get_node(&document->yaml, index);
}

bool document_pair(struct document *document, const yaml_node_t *mapping, size_t index,
                   const char **key, yaml_node_t **value) {
    if (!mapping || mapping->type != YAML_MAPPING_NODE)
        return false;
    const size_t count =
        (size_t)(mapping->data.mapping.pairs.top - mapping->data.mapping.pairs.start);
    if (index >= count)
        return false;
    const yaml_node_pair_t *const pair = &mapping->data.mapping.pairs.start[index];
    const yaml_node_t *const name = node_at(document, pair->key);
    const char *const text =
        name && name->type == YAML_SCALAR_NODE ? (const char *)name->data.scalar.value : "";
    *key = *text && strlen(text) == name->data.scalar.length ? text : "";
    *value = node_at(document, pair->value);
    return *value != NULL;
}

bool document_item(struct document *document, const yaml_node_t *sequence, size_t index,
                   yaml_node_t **item) {
    if (!sequence || sequence->type != YAML_SEQUENCE_NODE)
        return false;
    const size_t count =
        (size_t)(sequence->data.sequence.items.top - sequence->data.sequence.items.start);
    if (index >= count)
        return false;
    *item = node_at(document, sequence->data.sequence.items.start[index]);
    return *item != NULL;
}

yaml_node_t *document_child(struct document *document, const yaml_node_t *mapping,
                            const char *key) {
    const char *name;
    yaml_node_t *value;
    yaml_node_t *found = NULL;
    for (size_t i = 0; document_pair(document, mapping, i, &name, &value); i++) {
        if (strcmp(name, key) != 0)
            continue;
        if (found)
            document_refuse_twice(document, value);
        found = value;
    }
    return found;
}

void document_refuse_twice(struct document *document, const yaml_node_t *value) {
    document_refuse(document, "has a key for the second time", document_line(value));
}

/* --- values --- */

bool document_value(struct document *document, const yaml_node_t *node, struct value *value) {
    if (!node || node->type != YAML_SCALAR_NODE)
        return false;
    const char *const text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length)
        return false;
    const enum substitution done =
        substitute(text, document->look_up, value->text, sizeof value->text);
    if (done == SUBSTITUTION_MALFORMED)
        document_refuse(document, "has a malformed reference to an environment variable",
                        document_line(node));
    if (done != SUBSTITUTED)
        return false;
    const bool plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    value->scalar = plain ? scalar_parse(value->text) : (struct scalar){.type = SCALAR_TEXT};
    return true;
}
