/* Reads unwind tables within bounds: no read ever leaves [at, end). An attempt to read beyond them,
 * or a malformed value, sets `failed`. From then on nothing is read, and values mean nothing, so
 * that callers check only once, at the end. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CFI_READER_H
#define OTELPROF_CFI_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct reader {
    uintptr_t at;
    uintptr_t end;
    bool failed;
};

/* Lists the encodings of pointers, LSB 5.0 core, 10.5.1. */
enum {
    ENCODING_OMIT = 0xff,
    ENCODING_FORMAT = 0x0f,
    ENCODING_PCREL = 0x10,
    ENCODING_DATAREL = 0x30,
    ENCODING_BASE = 0x70,
    ENCODING_INDIRECT = 0x80,
};

static inline bool reader_has(struct reader *r, uintptr_t size) {
    if (!r->failed && r->at <= r->end && size <= r->end - r->at)
        return true;
    r->failed = true;
    return false;
}

static inline uint64_t read_unsigned(struct reader *r, unsigned size) {
    uint64_t value = 0;
    if (!reader_has(r, size))
        return 0;
    memcpy(&value, (const void *)r->at, size); /* little endian */
    r->at += size;
    return value;
}

static inline int64_t read_signed(struct reader *r, unsigned size) {
    const unsigned shift = 64 - 8 * size;
    return (int64_t)(read_unsigned(r, size) << shift) >> shift;
}

static inline void skip(struct reader *r, uint64_t size) {
    if (reader_has(r, size))
        r->at += size;
}

static inline uint64_t read_uleb(struct reader *r) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = read_unsigned(r, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    r->failed = true;
    return 0;
}

static inline int64_t read_sleb(struct reader *r) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = read_unsigned(r, 1);
        value |= (byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if (shift + 7 < 64 && (byte & 0x40))
            value |= ~UINT64_C(0) << (shift + 7);
        return (int64_t)value;
    }
    r->failed = true;
    return 0;
}

/* Reads a value in the given format, without adding its base. */
static inline uint64_t read_format(struct reader *r, unsigned format) {
    switch (format) {
    case 0x00: /* absptr */
    case 0x04:
    case 0x0c:
        return read_unsigned(r, 8);
    case 0x01:
        return read_uleb(r);
    case 0x02:
        return read_unsigned(r, 2);
    case 0x03:
        return read_unsigned(r, 4);
    case 0x09:
        return (uint64_t)read_sleb(r);
    case 0x0a:
        return (uint64_t)read_signed(r, 2);
    case 0x0b:
        return (uint64_t)read_signed(r, 4);
    default:
        r->failed = true;
        return 0;
    }
}

/* Reads an encoded pointer; 0 if it is omitted. Does not follow an indirect pointer: returns the
 * address where the pointer is. */
static inline uint64_t read_pointer(struct reader *r, unsigned encoding, uintptr_t data_base) {
    if (encoding == ENCODING_OMIT)
        return 0;
    const uintptr_t place = r->at;
    const uint64_t value = read_format(r, encoding & ENCODING_FORMAT);
    switch (encoding & ENCODING_BASE) {
    case 0:
        return value;
    case ENCODING_PCREL:
        return value + place;
    case ENCODING_DATAREL:
        return value + data_base;
    default:
        r->failed = true;
        return 0;
    }
}

#endif
