/* Distinguishes two builds of an object that were loaded at the same address, one after the other.
 *
 * The number is made from the program headers, which hold the sizes of all parts, and from the GNU
 * build id, if the linker has written one. Two builds whose headers are equal, without a build id,
 * have the same number. Context: any; the object stays loaded, as in a callback of
 * dl_iterate_phdr().
 */
#ifndef OTELPROF_OBJECT_BUILD_H
#define OTELPROF_OBJECT_BUILD_H

#include "build_id_note.h"
#include "hash.h"
#include "object_segments.h"
#include "readable_memory.h"

#include <link.h>

/* Returns the number of the object's build. */
static inline uint64_t object_build(const struct dl_phdr_info *object) {
    const struct object_segments segments = object_segments_of(object);
    uint64_t hash = object->dlpi_phnum;
    for (uint32_t i = 0; i < segments.count; i++) {
        const ElfW(Phdr) *const header = &segments.headers[i];
        const uintptr_t start = segments.bias + header->p_vaddr;
        const size_t size = header->p_memsz;
        uint32_t id_size = 0;
        hash = hash_memory(hash, header, sizeof *header);
        if (header->p_type != PT_NOTE || !object_is_readable(&segments, start, size) ||
            readable_memory(start, size) != size)
            continue;
        const uint8_t *const id = build_id_note((const void *)start, size, &id_size);
        hash = id ? hash_memory(hash, id, id_size) : hash;
    }
    return hash;
}

#endif
