#include "declared_resource.h"

#include "keyvalues.h"

#include <stdlib.h>
#include <string.h>

static const char section[] = "resource.";
static const char attribute_section[] = "resource.attributes: ";

/* --- one value --- */

enum wanted { WANTED_STRING, WANTED_BOOL, WANTED_INT, WANTED_DOUBLE, WANTED_ARRAY, WANTED_UNKNOWN };

static enum wanted parse_wanted(const char *type) {
    static const char *const words[] = {"string", "bool", "int", "double"};
    for (int i = WANTED_STRING; i < WANTED_ARRAY; i++)
        if (strcmp(type, words[i]) == 0)
            return i;
    const size_t length = strlen(type);
    const bool is_array = length > 6 && strcmp(type + length - 6, "_array") == 0;
    return is_array ? WANTED_ARRAY : WANTED_UNKNOWN;
}

/* Converts a value. A string attribute keeps the written text, even if it reads as a number.
 * Returns false if the value is of another type. */
static bool convert(const struct value *from, enum wanted wanted, struct attribute_value *to) {
    const struct scalar *const scalar = &from->scalar;
    switch (wanted) {
    case WANTED_STRING:
        *to = (struct attribute_value){.kind = ATTRIBUTE_TEXT, .text = from->text};
        return true;
    case WANTED_BOOL:
        *to = (struct attribute_value){.kind = ATTRIBUTE_BOOL, .truth = scalar->truth};
        return scalar->type == SCALAR_BOOL;
    case WANTED_INT:
        *to = (struct attribute_value){.kind = ATTRIBUTE_INT, .integer = scalar->integer};
        return scalar->type == SCALAR_INT;
    default:
        *to = (struct attribute_value){.kind = ATTRIBUTE_DOUBLE, .real = scalar->real};
        return scalar->type == SCALAR_DOUBLE || scalar->type == SCALAR_INT;
    }
}

/* --- the list of attributes --- */

static const char *set_attribute(struct attribute_set *set, const char *name,
                                 const struct value *value, enum wanted wanted) {
    struct attribute_value converted;
    if (!convert(value, wanted, &converted))
        return "has a value that is not of its type; it is left out";
    const bool is_nameless_service =
        converted.kind == ATTRIBUTE_TEXT && !*converted.text && strcmp(name, "service.name") == 0;
    if (is_nameless_service)
        return NULL;
    attributes_set(set, name, converted);
    return attributes_find(set, name) ? NULL : "is one too many (64 are taken); it is left out";
}

/* Reads one attribute. Returns NULL on success; otherwise the error. Stores the entry's name, or ""
 * if it has none. */
static const char *read_attribute(struct document *document, const yaml_node_t *item,
                                  struct attribute_set *set, struct value *name) {
    struct value value;
    struct value type;
    const yaml_node_t *const value_node = document_child(document, item, "value");
    const yaml_node_t *const type_node = document_child(document, item, "type");
    if (!document_value(document, document_child(document, item, "name"), name) || !*name->text) {
        name->text[0] = 0;
        return "an entry has no name; it is left out";
    }
    const bool has_type = type_node && document_value(document, type_node, &type);
    const enum wanted wanted = !type_node                        ? WANTED_STRING
                               : !has_type                       ? WANTED_UNKNOWN
                               : type.scalar.type == SCALAR_NULL ? WANTED_STRING
                                                                 : parse_wanted(type.text);
    if (wanted == WANTED_UNKNOWN)
        return "has a type that is not one of string, bool, int, double; it is left out";
    if (wanted == WANTED_ARRAY || (value_node && value_node->type == YAML_SEQUENCE_NODE))
        return "is an array, which profiles do not carry; it is left out";
    if (!document_value(document, value_node, &value))
        return "has no value that can be used; it is left out";
    return value.scalar.type == SCALAR_NULL ? NULL : set_attribute(set, name->text, &value, wanted);
}

static void read_attribute_list(struct document *document, const yaml_node_t *list,
                                struct attribute_set *set, struct complaints *complaints) {
    yaml_node_t *item;
    struct value name;
    if (list->type != YAML_SEQUENCE_NODE) {
        complain(complaints, document_line(list), section, "attributes",
                 "is no list of attributes; it is left out");
        return;
    }
    for (size_t i = 0; document_item(document, list, i, &item); i++) {
        const char *const problem = read_attribute(document, item, set, &name);
        if (problem)
            complain(complaints, document_line(item), attribute_section, name.text, problem);
    }
}

/* --- the list of pairs --- */

static void add_pair(void *set, const char *key, const char *text) {
    if (*text || strcmp(key, "service.name") != 0)
        attributes_set_text(set, key, text);
}

static void read_list(struct document *document, const yaml_node_t *node, struct attribute_set *set,
                      struct complaints *complaints) {
    struct value value;
    const bool known = document_value(document, node, &value);
    if (known && value.scalar.type == SCALAR_NULL)
        return;
    char *const scratch = known ? malloc(strlen(value.text) + 1) : NULL;
    if (!scratch || !keyvalues_parse(value.text, scratch, add_pair, set))
        complain(complaints, document_line(node), section, "attributes_list",
                 "is not a list of key=value pairs; it is left out");
    free(scratch);
}

/* --- the whole section --- */

static bool is_known_key(const char *key) {
    static const char *const keys[] = {"attributes", "attributes_list", "schema_url",
                                       "detection/development"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

void declared_resource_read(struct document *document, const yaml_node_t *resource,
                            struct attribute_set *set, struct complaints *complaints) {
    const char *key;
    yaml_node_t *value;
    const yaml_node_t *const list = document_child(document, resource, "attributes_list");
    const yaml_node_t *const attributes = document_child(document, resource, "attributes");
    if (resource && resource->type != YAML_MAPPING_NODE &&
        !(resource->type == YAML_SCALAR_NODE && !resource->data.scalar.length))
        complain(complaints, document_line(resource), "", "resource",
                 "is no mapping of keys to values; it is left out");
    if (list)
        read_list(document, list, set, complaints);
    if (attributes && !(attributes->type == YAML_SCALAR_NODE && !attributes->data.scalar.length))
        read_attribute_list(document, attributes, set, complaints);
    for (size_t i = 0; document_pair(document, resource, i, &key, &value); i++)
        if (!is_known_key(key))
            complain(complaints, document_line(value), section, key, "is not known; it is ignored");
}
