#include "foreign_memory.h"

#include "safe_read.h"
#include "seccomp_state.h"

#include <string.h>

bool foreign_memory_is_known(const struct foreign_memory *memory, uintptr_t address, size_t size) {
    const struct memory_range known = memory->known;
    return address >= known.low && address <= known.high && size <= known.high - address;
}

/* Copies known memory with memcpy, which may read the bytes in any order, but reads each once. */
bool foreign_memory_copy(struct foreign_memory *memory, void *to, uintptr_t address, size_t size) {
    if (size == 0) /* no byte is copied, so any address is valid */
        return true;
    if (memory->of_another)
        return safe_read(address, to, size);
    if (foreign_memory_is_known(memory, address, size)) {
        memcpy(to, (const void *)address, size);
        return true;
    }
    if (memory->filter == FILTER_UNKNOWN)
        memory->filter = seccomp_is_filtered() ? FILTER_THERE : FILTER_NONE;
    return safe_read_here(address, to, size, memory->filter == FILTER_THERE);
}

const void *foreign_memory_at(struct foreign_memory *memory, uintptr_t address, size_t size) {
    if (size > FOREIGN_COPY_BYTES)
        return NULL;
    if (size == 0)
        return memory->room;
    if (!memory->of_another && foreign_memory_is_known(memory, address, size))
        return (const void *)address;
    return foreign_memory_copy(memory, memory->room, address, size) ? memory->room : NULL;
}
