/* Writes Protobuf's wire format straight into a buffer.
 *
 * Samples, stacks and the dictionary of an export are tens of thousands of small messages. As a
 * struct of a generated encoder each message would take ten times its size, and the encoder would
 * walk it three times; here each field is written once, to its final place. protobuf-c encodes the
 * few other messages. A message inside another is begun, filled and ended; its length, which
 * precedes it, is filled in at the end. The buffer grows as needed. If there is no memory, the
 * buffer is marked `failed`, and further writes have no effect, so one check at the end suffices.
 * Reference: protobuf.dev/programming-guides/encoding. Context: flush. Not thread-safe.
 */
#ifndef OTELPROF_WIRE_H
#define OTELPROF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire {
    uint8_t *bytes; /* malloc'ed */
    size_t size;
    size_t capacity;
    bool failed;
};

void wire_free(struct wire *wire);

/* Passes the bytes, `*size` of them without spare room, to the caller, and empties the buffer.
 * NULL: there was no memory. */
uint8_t *wire_take(struct wire *wire, size_t *size);

/* Makes room for `size` more bytes. Returns false if there is no memory. */
bool wire_reserve(struct wire *wire, size_t size);

/* Write a varint field; wire_number() leaves a 0 out, as a field without presence requires. */
void wire_number(struct wire *wire, unsigned field, uint64_t value);
void wire_number_present(struct wire *wire, unsigned field, uint64_t value);

/* Writes a fixed64 field, or the bits of a double field. */
void wire_fixed64_present(struct wire *wire, unsigned field, uint64_t value);

/* Writes a field of bytes, text, or a message that is encoded already, even if it is empty. */
void wire_bytes(struct wire *wire, unsigned field, const void *bytes, size_t size);

/* Writes a repeated int32 field of non-negative numbers, packed; leaves it out if there are none.
 * With `translate` the numbers are indexes into that table, whose entries are written. */
void wire_packed(struct wire *wire, unsigned field, const int32_t *numbers, size_t count,
                 const int32_t *translate);

/* Writes a number without a tag, into a packed field that was begun. */
void wire_varint(struct wire *wire, uint64_t value);

/* Appends bytes that have no tag, for other formats than Protobuf's. */
void wire_raw(struct wire *wire, const void *bytes, size_t size);

/* Begin and end a message, or a packed field: everything written between is its content.
 * wire_begin() returns the value that wire_end() needs. */
size_t wire_begin(struct wire *wire, unsigned field);
void wire_end(struct wire *wire, size_t begun);

#endif
