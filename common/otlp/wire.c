#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256, MAX_VARINT = 10, MAX_INT32_VARINT = 5 };
enum wire_type { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

void wire_free(struct wire *wire) {
    free(wire->bytes);
    *wire = (struct wire){0};
}

uint8_t *wire_take(struct wire *wire, size_t *size) {
    uint8_t *bytes = NULL;
    if (!wire->failed) {
        *size = wire->size;
        bytes = realloc(wire->bytes, wire->size + !wire->size);
        if (!bytes)
            bytes = wire->bytes;
        wire->bytes = NULL;
    }
    wire_free(wire);
    return bytes;
}

static bool wire_fail(struct wire *wire) {
    wire->failed = true;
    /* takes the room away, so that the check for room detects the failure, too */
    wire->capacity = wire->size;
    return false;
}

static bool wire_grow(struct wire *wire, size_t size) {
    size_t capacity = wire->capacity ? wire->capacity : FIRST_CAPACITY;
    while (capacity - wire->size < size && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    if (wire->failed || capacity - wire->size < size)
        return wire_fail(wire);
    uint8_t *const bytes = realloc(wire->bytes, capacity);
    if (!bytes)
        return wire_fail(wire);
    wire->bytes = bytes;
    wire->capacity = capacity;
    return true;
}

bool wire_reserve(struct wire *wire, size_t size) {
    return wire->capacity - wire->size >= size || wire_grow(wire, size);
}

/* Writes a number, and returns the place after it. */
static uint8_t *wire_put_varint(uint8_t *at, uint64_t value) {
    for (; value > 0x7f; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static size_t wire_varint_size(uint64_t value) {
    size_t size = 1;
    for (; value > 0x7f; value >>= 7)
        size++;
    return size;
}

static uint8_t *wire_put_tag(uint8_t *at, unsigned field, enum wire_type type) {
    return wire_put_varint(at, field << 3 | type);
}

static void wire_end_at(struct wire *wire, const uint8_t *end) {
    wire->size = (size_t)(end - wire->bytes);
}

void wire_raw(struct wire *wire, const void *bytes, size_t size) {
    if (!size || !wire_reserve(wire, size))
        return;
    memcpy(wire->bytes + wire->size, bytes, size);
    wire->size += size;
}

void wire_varint(struct wire *wire, uint64_t value) {
    if (wire_reserve(wire, MAX_VARINT))
        wire_end_at(wire, wire_put_varint(wire->bytes + wire->size, value));
}

void wire_number_present(struct wire *wire, unsigned field, uint64_t value) {
    if (!wire_reserve(wire, 2 * MAX_VARINT))
        return;
    wire_end_at(wire,
                wire_put_varint(wire_put_tag(wire->bytes + wire->size, field, VARINT), value));
}

void wire_number(struct wire *wire, unsigned field, uint64_t value) {
    if (value)
        wire_number_present(wire, field, value);
}

void wire_fixed64_present(struct wire *wire, unsigned field, uint64_t value) {
    if (!wire_reserve(wire, MAX_VARINT + 8))
        return;
    uint8_t *at = wire_put_tag(wire->bytes + wire->size, field, FIXED64);
    for (int i = 0; i < 8; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    wire_end_at(wire, at);
}

void wire_bytes(struct wire *wire, unsigned field, const void *bytes, size_t size) {
    if (!wire_reserve(wire, 2 * MAX_VARINT + size))
        return;
    uint8_t *const at =
        wire_put_varint(wire_put_tag(wire->bytes + wire->size, field, LENGTH), size);
    if (size)
        memcpy(at, bytes, size);
    wire_end_at(wire, at + size);
}

/* Begins a message. Reserves one byte for the length, which suffices for most fields. */
size_t wire_begin(struct wire *wire, unsigned field) {
    if (!wire_reserve(wire, MAX_VARINT + 1))
        return 0;
    wire_end_at(wire, wire_put_tag(wire->bytes + wire->size, field, LENGTH) + 1);
    return wire->size;
}

void wire_end(struct wire *wire, size_t begun) {
    if (!wire_reserve(wire, MAX_VARINT))
        return;
    const size_t size = wire->size - begun;
    const size_t more = wire_varint_size(size) - 1;
    uint8_t *const content = wire->bytes + begun;
    if (more)
        memmove(content + more, content, size);
    (void)wire_put_varint(content - 1, size);
    wire->size += more;
}

void wire_packed(struct wire *wire, unsigned field, const int32_t *numbers, size_t count,
                 const int32_t *translate) {
    if (!count || !wire_reserve(wire, 2 * MAX_VARINT + count * MAX_INT32_VARINT))
        return;
    const size_t begun = wire_begin(wire, field);
    uint8_t *at = wire->bytes + begun;
    for (size_t i = 0; i < count; i++)
        at = wire_put_varint(at, (uint32_t)(translate ? translate[numbers[i]] : numbers[i]));
    wire_end_at(wire, at);
    wire_end(wire, begun);
}
