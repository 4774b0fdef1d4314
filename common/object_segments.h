/* Finds the readable parts of a loaded object: its PT_LOAD segments with read permission, one by
 * one.
 *
 * An object's tables have addresses. If the object's file is damaged, the addresses may lead to
 * unmapped memory, for example between two segments, and yet the object may run, because only a
 * profiler reads these tables. So every address from an object is checked here before memory is
 * read. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_OBJECT_SEGMENTS_H
#define OTELPROF_OBJECT_SEGMENTS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct object_segments {
    const ElfW(Phdr) * headers; /* program headers, as the loader used them */
    uint32_t count;
    uintptr_t bias;
};

/* Holds a range of readable addresses; empty if start == end. */
struct readable_range {
    uintptr_t start;
    uintptr_t end;
};

enum { MAX_OBJECT_SEGMENTS = 64 }; /* limit of program headers; linkers write a dozen */

/* Returns the segment around `address` that has all of `permissions` (PF_*); empty: there is
 * none. */
static inline struct readable_range object_part_around(const struct object_segments *object,
                                                       uintptr_t address, uint32_t permissions) {
    for (uint32_t i = 0; i < object->count; i++) {
        const ElfW(Phdr) *const segment = &object->headers[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & permissions) != permissions)
            continue;
        const uintptr_t start = object->bias + segment->p_vaddr;
        if (address - start < segment->p_memsz)
            return (struct readable_range){start, start + segment->p_memsz};
    }
    return (struct readable_range){0, 0};
}

/* Returns the segment around `address`; empty: there is none, or it cannot be read. */
static inline struct readable_range object_readable_around(const struct object_segments *object,
                                                           uintptr_t address) {
    return object_part_around(object, address, PF_R);
}

/* Returns whether `size` bytes at `address` lie in one segment with those permissions. */
static inline bool object_has(const struct object_segments *object, uintptr_t address,
                              uintptr_t size, uint32_t permissions) {
    const struct readable_range range = object_part_around(object, address, permissions);
    return range.end != range.start && size <= range.end - address;
}

static inline bool object_is_readable(const struct object_segments *object, uintptr_t address,
                                      uintptr_t size) {
    return object_has(object, address, size, PF_R);
}

/* Returns the program header of that type; of several the last, which the loader uses. NULL: there
 * is none. */
static inline const ElfW(Phdr) *
    object_header(const struct object_segments *object, uint32_t type) {
    for (uint32_t i = object->count; i-- > 0;)
        if (object->headers[i].p_type == type)
            return &object->headers[i];
    return NULL;
}

/* Returns the segments of an object that dl_iterate_phdr() visits. */
static inline struct object_segments object_segments_of(const struct dl_phdr_info *info) {
    return (struct object_segments){info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr};
}

/* Returns whether a segment of the object spans `address`. */
static inline bool object_spans(const struct dl_phdr_info *info, uintptr_t address) {
    const struct object_segments object = object_segments_of(info);
    return object_has(&object, address, 1, 0);
}

/* Returns the segments of the object that is mapped from `start` on, by the headers in its first
 * page, which must be readable; none if the page does not contain all of them, or is no object's
 * beginning. */
static inline struct object_segments object_segments_at(uintptr_t start) {
    enum { FIRST_PAGE = 4096 };
    const ElfW(Ehdr) *const file = (const void *)start;
    const struct object_segments none = {NULL, 0, 0};
    if (memcmp(file->e_ident, ELFMAG, SELFMAG) != 0 || file->e_phnum > MAX_OBJECT_SEGMENTS ||
        file->e_phentsize != sizeof(ElfW(Phdr)) || file->e_phoff > FIRST_PAGE ||
        file->e_phoff % _Alignof(ElfW(Phdr)) != 0 ||
        file->e_phoff + file->e_phnum * sizeof(ElfW(Phdr)) > FIRST_PAGE)
        return none;
    struct object_segments object = {(const void *)(start + file->e_phoff), file->e_phnum, 0};
    for (uint32_t i = 0; i < object.count; i++) {
        if (object.headers[i].p_type != PT_LOAD)
            continue;
        object.bias = start - (object.headers[i].p_vaddr & -(uintptr_t)FIRST_PAGE);
        return object;
    }
    return none;
}

#endif
