#include "context_attributes.h"

static bool has_same_key(const struct context_attribute *a, const struct context_attribute *b) {
    if (!a->key || !b->key)
        return !a->key && !b->key && a->key_index == b->key_index;
    return a->key_bytes == b->key_bytes && memcmp(a->key, b->key, a->key_bytes) == 0;
}

/* Finds the entry with the key of `wanted`: sets `*start` and `*end` to its beginning and its end.
 * Returns false if there is none. */
static bool context_attributes_find(const struct sample_context *context,
                                    const struct context_attribute *wanted, uint32_t *start,
                                    uint32_t *end) {
    struct context_attribute attribute;
    *end = 0;
    do
        *start = *end;
    while (context_next_attribute(context, end, &attribute) && !has_same_key(&attribute, wanted));
    return *end != *start;
}

bool context_attributes_have(const struct context_attributes *attributes,
                             const struct context_attribute *attribute) {
    uint32_t start;
    uint32_t end;
    return context_attributes_find(attributes->context, attribute, &start, &end);
}

void context_attributes_remove(struct context_attributes *attributes,
                               const struct context_attribute *attribute) {
    struct sample_context *const context = attributes->context;
    uint32_t start;
    uint32_t end;
    if (!context_attributes_find(context, attribute, &start, &end))
        return;
    memmove(context->attributes + start, context->attributes + end, context->attribute_bytes - end);
    context->attribute_bytes -= end - start;
    attributes->count--;
}

bool context_attributes_add(struct context_attributes *attributes,
                            const struct context_attribute *attribute) {
    struct sample_context *const context = attributes->context;
    const uint32_t key_bytes = attribute->key ? attribute->key_bytes : 1;
    const uint32_t size = 2 + key_bytes + attribute->value_bytes;
    uint8_t *const entry = context->attributes + context->attribute_bytes;
    if (size > CONTEXT_ATTRIBUTE_BYTES - context->attribute_bytes ||
        attributes->count == CONTEXT_ATTRIBUTES)
        return false;
    entry[0] = attribute->key ? attribute->key_bytes : 0;
    entry[1] = attribute->value_bytes;
    if (attribute->key)
        memcpy(entry + 2, attribute->key, key_bytes);
    else
        entry[2] = attribute->key_index;
    memcpy(entry + 2 + key_bytes, attribute->value, attribute->value_bytes);
    context->attribute_bytes += size;
    attributes->count++;
    return true;
}

void context_attributes_end(const struct context_attributes *attributes) {
    struct sample_context *const context = attributes->context;
    const uint32_t used = context->attribute_bytes;
    const uint32_t padding = -used & 7;
    for (uint32_t i = 0; i < padding; i++)
        context->attributes[used + i] = 0;
}
