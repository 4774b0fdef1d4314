#include "context_payload.h"

#include "process_context.pb-c.h"
#include "utf8.h"

#include <string.h>

typedef Otelprof__Context__ContextAttribute Attribute;
typedef Otelprof__Context__ContextValue Value;

/* Not empty, no longer than `most` bytes, UTF-8 and without control characters where they would
 * hurt. */
static bool is_sound(const char *text, size_t most, bool one_word) {
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

/* false: none that can be taken. */
static bool value_of(const Value *from, struct attribute_value *to) {
    switch (from ? from->value_case : OTELPROF__CONTEXT__CONTEXT_VALUE__VALUE__NOT_SET) {
    case OTELPROF__CONTEXT__CONTEXT_VALUE__VALUE_STRING_VALUE:
        *to = (struct attribute_value){.kind = ATTRIBUTE_TEXT, .text = from->string_value};
        return is_sound(from->string_value, CONTEXT_TEXT_BYTES, false);
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

static void take(struct attribute_set *set, const Attribute *attribute) {
    struct attribute_value value;
    if (is_sound(attribute->key, CONTEXT_KEY_BYTES, true) && value_of(attribute->value, &value))
        attributes_set(set, attribute->key, value);
}

bool context_payload_read(const uint8_t *bytes, size_t size, struct attribute_set *set) {
    if (size > CONTEXT_PAYLOAD_BYTES)
        return false;
    Otelprof__Context__ProcessContext *const context =
        otelprof__context__process_context__unpack(NULL, size, bytes);
    if (!context)
        return false;
    for (size_t i = 0; context->resource && i < context->resource->n_attributes; i++)
        take(set, context->resource->attributes[i]);
    otelprof__context__process_context__free_unpacked(context, NULL);
    return true;
}
