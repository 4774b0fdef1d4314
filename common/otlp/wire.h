/* Writes Protobuf's wire format straight into a buffer.
 *
 * Samples, stacks and the dictionary of an export are tens of thousands of small messages. As
 * structs of a generated encoder each takes ten times its size and is walked three times; here a
 * field is written to its final place, once. The few other messages are protobuf-c's. A message
 * inside another is begun, filled and ended; its length, which precedes it, is filled in at the
 * end. The buffer grows as needed. When memory runs out it is marked `failed` and further writing
 * does nothing, so one check at the end is enough.
 * Reference: protobuf.dev/programming-guides/encoding.
 * Context: flush. Not thread-safe.
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

/* Gives the bytes, `*size` of them without spare room, to the caller, and empties the buffer. NULL:
 * memory had run out. */
uint8_t *wire_take(struct wire *wire, size_t *size);

/* Makes room for `size` more bytes; false: no memory. */
bool wire_reserve(struct wire *wire, size_t size);

/* Write a varint field; wire_number() leaves a 0 out, as a field without presence requires. */
void wire_number(struct wire *wire, unsigned field, uint64_t value);
void wire_number_present(struct wire *wire, unsigned field, uint64_t value);

/* Writes a fixed64 or double field (its bits). */
void wire_fixed64_present(struct wire *wire, unsigned field, uint64_t value);

/* Writes a field of bytes, text, or a message that is encoded already, even if it is empty. */
void wire_bytes(struct wire *wire, unsigned field, const void *bytes, size_t size);

/* Writes a repeated int32 field of non-negative numbers, packed; leaves it out if there are none.
 * With `translate` the numbers are indexes into that table, whose entries are written. */
void wire_packed(struct wire *wire, unsigned field, const int32_t *numbers, size_t count,
                 const int32_t *translate);

/* Writes a bare number: one of a packed field that has been begun. */
void wire_varint(struct wire *wire, uint64_t value);

/* Appends bytes that have no tag, for other formats than Protobuf's. */
void wire_raw(struct wire *wire, const void *bytes, size_t size);

/* Begin and end a message, or a packed field: everything written between is its content. */
size_t wire_begin(struct wire *wire, unsigned field);
void wire_end(struct wire *wire, size_t begun);

#endif
