/* Makes unwind tables byte by byte, as a JIT compiler does. */
#ifndef OTELPROF_TEST_UNWIND_SECTION_H
#define OTELPROF_TEST_UNWIND_SECTION_H

#include "unit.h"

enum { SECTION_BYTES = 4096 };

struct section {
    _Alignas(8) uint8_t bytes[SECTION_BYTES];
    size_t size;
    size_t entry; /* offset of the last entry */
};

static inline void put(struct section *s, const void *bytes, size_t size) {
    assert_true(s->size + size <= sizeof s->bytes);
    memcpy(s->bytes + s->size, bytes, size);
    s->size += size;
}

static inline void put_32(struct section *s, uint32_t value) {
    put(s, &value, sizeof value);
}

static inline void put_64(struct section *s, uint64_t value) {
    put(s, &value, sizeof value);
}

/* Begins a section with absolute addresses. */
static inline void begin_section(struct section *s) {
    s->size = 0;
    put_32(s, 20);
    put_32(s, 0);
    put(s, "\1zR\0\1\x78\x10\1\0\x0c\7\x08\x90\1\0", 16); /* CFA = rsp + 8 */
}

static inline void put_entry(struct section *s, uintptr_t start, uintptr_t size, const char *code,
                             size_t code_size) {
    s->entry = s->size;
    put_32(s, (uint32_t)(4 + 16 + 1 + code_size));
    put_32(s, (uint32_t)s->size); /* back to the common information */
    put_64(s, start);
    put_64(s, size);
    put(s, "", 1);
    put(s, code, code_size);
}

static inline void end_section(struct section *s) {
    put_32(s, 0);
}

/* Describes one function, whose CFA is always at rsp + `cfa`. */
static inline void describe_plainly(struct section *s, uintptr_t start, uintptr_t size, char cfa) {
    const char code[] = {0x0e, cfa}; /* def_cfa_offset */
    begin_section(s);
    put_entry(s, start, size, code, sizeof code);
    end_section(s);
}

#endif
