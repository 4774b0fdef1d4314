#include "context_payload.h"

#include "process_context.pb-c.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

typedef Otelprof__Context__ProcessContext Message;
typedef Otelprof__Context__ContextAttribute Attribute;
typedef Otelprof__Context__ContextValue Value;

/* Returns true if the text has 1 to `most` bytes, is UTF-8 and, if `one_word`, has no control
 * characters. */
static bool is_valid_text(const char *text, size_t most, bool one_word) {
    const size_t size = strnlen(text, most + 1);
    if (size == 0 || size > most)
        return false;
    while (*text) {
        const size_t length = utf8_sequence(text);
        if (length == 0 || (one_word && ((unsigned char)*text < 0x20 || *text == 0x7f)))
            return false;
        text += length;
    }
    return true;
}

bool is_context_key(const char *text) {
    return is_valid_text(text, CONTEXT_KEY_BYTES, true);
}

static Message *context_payload_unpack(const uint8_t *bytes, size_t size) {
    return size <= CONTEXT_PAYLOAD_BYTES
               ? otelprof__context__process_context__unpack(NULL, size, bytes)
               : NULL;
}

/* --- the resource --- */

/* Converts a value. Returns false if it has no usable type or text. */
static bool read_context_value(const Value *from, struct attribute_value *to) {
    switch (from ? from->value_case : OTELPROF__CONTEXT__CONTEXT_VALUE__VALUE__NOT_SET) {
    case OTELPROF__CONTEXT__CONTEXT_VALUE__VALUE_STRING_VALUE:
        *to = (struct attribute_value){.kind = ATTRIBUTE_TEXT, .text = from->string_value};
        return is_valid_text(from->string_value, CONTEXT_TEXT_BYTES, false);
    case OTELPROF__CONTEXT__CONTEXT_VALUE__VALUE_BOOL_VALUE:
        *to = (struct attribute_value){.kind = ATTRIBUTE_BOOL, .truth = from->bool_value};
        return true;
    case OTELPROF__CONTEXT__CONTEXT_VALUE__VALUE_INT_VALUE:
        *to = (struct attribute_value){.kind = ATTRIBUTE_INT, .integer = from->int_value};
        return true;
    case OTELPROF__CONTEXT__CONTEXT_VALUE__VALUE_DOUBLE_VALUE:
        *to = (struct attribute_value){.kind = ATTRIBUTE_DOUBLE, .real = from->double_value};
        return true;
    default:
        return false;
    }
}

bool context_payload_read(const uint8_t *bytes, size_t size, struct attribute_set *set) {
    Message *const context = context_payload_unpack(bytes, size);
    if (!context)
        return false;
    for (size_t i = 0; context->resource && i < context->resource->n_attributes; i++) {
        const Attribute *const attribute = context->resource->attributes[i];
        struct attribute_value value;
        if (is_context_key(attribute->key) && read_context_value(attribute->value, &value))
            attributes_set(set, attribute->key, value);
    }
    otelprof__context__process_context__free_unpacked(context, NULL);
    return true;
}

/* --- the names of keys --- */

/* Returns the value of the last attribute of that key; NULL if there is none of the wanted kind. */
static const Value *find_attribute(const Message *message, const char *key, int kind) {
    for (size_t i = message->n_attributes; i-- > 0;)
        if (strcmp(message->attributes[i]->key, key) == 0) {
            const Value *const value = message->attributes[i]->value;
            return value && (int)value->value_case == kind ? value : NULL;
        }
    return NULL;
}

/* Accepts both versions of OTEP 4947's schema; the second version will replace the first. */
static bool is_known_schema(const Message *message) {
    const Value *const schema =
        find_attribute(message, "threadlocal.schema_version",
                       OTELPROF__CONTEXT__CONTEXT_VALUE__VALUE_STRING_VALUE);
    return schema && (strcmp(schema->string_value, "tlsdesc_v1_dev") == 0 ||
                      strcmp(schema->string_value, "tls_v1") == 0);
}

static void take_names(const Message *message, struct key_names *names) {
    const Value *const map = find_attribute(message, "threadlocal.attribute_key_map",
                                            OTELPROF__CONTEXT__CONTEXT_VALUE__VALUE_ARRAY_VALUE);
    for (size_t i = 0; map && i < map->array_value->n_values && i < KEY_NAMES; i++) {
        const char *const name = map->array_value->values[i]->string_value;
        names->of[i] = is_context_key(name) ? strdup(name) : NULL;
    }
}

void key_names_clear(struct key_names *names) {
    for (size_t i = 0; i < KEY_NAMES; i++)
        free(names->of[i]);
    *names = (struct key_names){{NULL}};
}

void context_payload_names(const uint8_t *bytes, size_t size, struct key_names *names) {
    Message *const message = context_payload_unpack(bytes, size);
    key_names_clear(names);
    if (!message)
        return;
    if (is_known_schema(message))
        take_names(message, names);
    otelprof__context__process_context__free_unpacked(message, NULL);
}
