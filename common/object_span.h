/* Tests which loaded object an address lies in, while dl_iterate_phdr() visits them. */
#ifndef OTELPROF_OBJECT_SPAN_H
#define OTELPROF_OBJECT_SPAN_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns whether one of the object's PT_LOAD segments spans `address`. Context: async-signal-safe.
 */
static inline bool object_spans(const struct dl_phdr_info *object, uintptr_t address) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            address - object->dlpi_addr - segment->p_vaddr < segment->p_memsz)
            return true;
    }
    return false;
}

#endif
