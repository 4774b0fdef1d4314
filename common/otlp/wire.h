/* Protobuf's wire format, written straight into a buffer.
 *
 * An export is ten thousand small messages. As structs of a generated encoder each takes ten times
 * its size and is walked three times; here a field is written where it belongs, once. A message
 * inside another is begun, filled and ended; its length, which stands in front, is put in at the
 * end. The buffer grows as needed. When memory runs out it is marked `failed` and further writing
 * does nothing, so that it is enough to look once, at the end.
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

/* The bytes, `*size` of them and no more room, become the caller's, and the buffer is empty. NULL:
 * memory had run out. */
uint8_t *wire_take(struct wire *wire, size_t *size);

/* Room for `size` more bytes; false: no memory. */
bool wire_reserve(struct wire *wire, size_t size);

/* A varint field; wire_number() leaves a 0 out, as a field without presence wants it. */
void wire_number(struct wire *wire, unsigned field, uint64_t value);
void wire_number_present(struct wire *wire, unsigned field, uint64_t value);

/* A fixed64 or double field (its bits); wire_fixed64() leaves a 0 out, likewise. */
void wire_fixed64(struct wire *wire, unsigned field, uint64_t value);
void wire_fixed64_present(struct wire *wire, unsigned field, uint64_t value);

/* A field of bytes, text, or a message that is encoded already; written even if it is empty. */
void wire_bytes(struct wire *wire, unsigned field, const void *bytes, size_t size);

/* A repeated int32 field of non-negative numbers, packed; left out if there are none. With
 * `translate` the numbers are places in that table, and what stands there is written. */
void wire_packed(struct wire *wire, unsigned field, const int32_t *numbers, size_t count,
                 const int32_t *translate);

/* A number by itself: one of a packed field that has been begun. */
void wire_varint(struct wire *wire, uint64_t value);

/* A message, or a packed field: what is written between the two is its content. */
size_t wire_begin(struct wire *wire, unsigned field);
void wire_end(struct wire *wire, size_t begun);

#endif
