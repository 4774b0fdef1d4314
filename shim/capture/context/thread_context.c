#include "thread_context.h"

#include "context_attributes.h"

#include <string.h>

enum { VALID = 1 };

struct record {
    uint8_t trace_id[TRACE_ID_BYTES];
    uint8_t span_id[SPAN_ID_BYTES];
    uint8_t valid;
    uint8_t flags;
    uint16_t attribute_bytes;
};
_Static_assert(sizeof(struct record) == 28, "OTEP 4947: packed, and no padding is in it");

/* Holds the set of keys that were seen. */
struct keys {
    uint64_t bits[4];
};

/* Holds a copy, at `bytes`, of the part [begin, end) of the attributes. */
struct window {
    const uint8_t *bytes;
    uint32_t begin;
    uint32_t end;
};

/* Reads the attribute at `at`. Its length is read only once, since the program may change it.
 * Returns false if the window does not hold the whole attribute. */
static bool attribute_in(const struct window *window, uint32_t at,
                         struct context_attribute *attribute) {
    if (window->end < at + 2)
        return false;
    const uint8_t *const entry = window->bytes + (at - window->begin);
    *attribute = (struct context_attribute){.key_index = *(const volatile uint8_t *)entry,
                                            .value_bytes = *(const volatile uint8_t *)&entry[1],
                                            .value = entry + 2};
    return window->end - at - 2 >= attribute->value_bytes;
}

/* Reads the attribute at `at` of `size` bytes; moves the window if it must. If the attribute ends
 * beyond `size`, its value must not be read. Returns false if the memory cannot be read. */
static bool thread_context_read_attribute(struct foreign_memory *memory, uintptr_t entries,
                                          uint32_t size, uint32_t at, struct window *window,
                                          struct context_attribute *attribute) {
    const uint32_t left = size - at;
    const uint32_t bytes = left < FOREIGN_COPY_BYTES ? left : FOREIGN_COPY_BYTES;
    if (attribute_in(window, at, attribute))
        return true;
    *window = (struct window){foreign_memory_at(memory, entries + at, bytes), at, at + bytes};
    if (!window->bytes)
        return false;
    (void)attribute_in(window, at, attribute);
    return true;
}

/* Reads all attributes. A repeated key gets its last value, or none if that does not fit. Clears
 * `*complete` if an attribute did not fit. Returns false if the memory cannot be read. */
static bool read_attributes(struct foreign_memory *memory, uintptr_t entries, uint32_t size,
                            struct sample_context *context, bool *complete) {
    struct context_attributes attributes = {context, 0};
    struct keys keys = {{0}};
    struct window window = {.end = 0};
    for (uint32_t at = 0; size - at >= 2;) {
        struct context_attribute attribute = {.key_index = 0};
        if (!thread_context_read_attribute(memory, entries, size, at, &window, &attribute))
            return false;
        if (attribute.value_bytes > size - at - 2)
            break;
        const uint64_t bit = UINT64_C(1) << attribute.key_index % 64;
        uint64_t *const seen = &keys.bits[attribute.key_index / 64];
        if (*seen & bit)
            context_attributes_remove(&attributes, &attribute);
        *seen |= bit;
        *complete &= context_attributes_add(&attributes, &attribute);
        at += 2u + attribute.value_bytes;
    }
    context_attributes_end(&attributes);
    return true;
}

enum context_outcome thread_context_read(uintptr_t variable, struct foreign_memory *memory,
                                         struct sample_context *context) {
    struct record record;
    uintptr_t address;
    memcpy(&address, (const void *)variable, sizeof address);
    if (!address)
        return CONTEXT_NONE;
    if (!foreign_memory_copy(memory, &record, address, sizeof record))
        return CONTEXT_WRONG;
    if (record.valid != VALID)
        return record.valid ? CONTEXT_WRONG : CONTEXT_NONE;
    const bool all = record.attribute_bytes <= THREAD_CONTEXT_ATTRIBUTE_BYTES;
    const uint32_t size = all ? record.attribute_bytes : THREAD_CONTEXT_ATTRIBUTE_BYTES;
    memcpy(context->trace_id, record.trace_id, sizeof record.trace_id);
    memcpy(context->span_id, record.span_id, sizeof record.span_id);
    context->attribute_bytes = 0;
    context->reserved = 0;
    bool complete = all;
    if (!read_attributes(memory, address + sizeof record, size, context, &complete))
        return CONTEXT_WRONG;
    if (!context_has_span(context) && !context->attribute_bytes)
        return CONTEXT_NONE;
    return complete ? CONTEXT_READ : CONTEXT_CUT;
}
