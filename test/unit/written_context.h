/* Makes contexts of threads, in the form in which a reader in the signal handler writes them. */
#ifndef OTELPROF_TEST_WRITTEN_CONTEXT_H
#define OTELPROF_TEST_WRITTEN_CONTEXT_H

#include "sample_context.h"

static inline struct sample_context span_context(const char trace[static TRACE_ID_BYTES],
                                                 const char span[static SPAN_ID_BYTES]) {
    struct sample_context context = {.attribute_bytes = 0};
    memcpy(context.trace_id, trace, TRACE_ID_BYTES);
    memcpy(context.span_id, span, SPAN_ID_BYTES);
    return context;
}

static void put_entry(struct sample_context *context, const uint8_t *key, uint8_t key_bytes,
                      uint8_t index, const char *value, size_t value_bytes) {
    uint8_t *const entry = context->attributes + context->attribute_bytes;
    const size_t key_size = key_bytes ? key_bytes : 1;
    assert_true(context->attribute_bytes + 2 + key_size + value_bytes <= CONTEXT_ATTRIBUTE_BYTES);
    entry[0] = key_bytes;
    entry[1] = (uint8_t)value_bytes;
    memcpy(entry + 2, key_bytes ? key : &index, key_size);
    memcpy(entry + 2 + key_size, value, value_bytes);
    context->attribute_bytes += (uint32_t)(2 + key_size + value_bytes);
}

static inline void put_named(struct sample_context *context, const char *key, const char *value) {
    put_entry(context, (const uint8_t *)key, (uint8_t)strlen(key), 0, value, strlen(value));
}

static inline void put_indexed(struct sample_context *context, uint8_t index, const char *value) {
    put_entry(context, NULL, 0, index, value, strlen(value));
}

#endif
