#include "foreign_memory.h"

#include "arch_memory.h"
#include "safe_read.h"
#include "unwind/stack_memory.h"

#include <string.h>

static bool memory_range_contains(struct memory_range range, uintptr_t address, size_t size) {
    return address >= range.low && address <= range.high && size <= range.high - address;
}

bool foreign_memory_has(struct foreign_memory *memory, uintptr_t address, size_t size) {
    const uintptr_t page_bytes = ARCH_SMALLEST_PAGE_BYTES;
    uintptr_t end;
    if (memory_range_contains(memory->known, address, size) ||
        memory_range_contains(memory->asked, address, size))
        return true;
    if (__builtin_add_overflow(address, size, &end) || end > UINTPTR_MAX - page_bytes)
        return false;
    const uintptr_t first = address & -page_bytes;
    for (uintptr_t page = first; page < end; page += page_bytes)
        if (!memory_range_contains(memory->asked, page, page_bytes) && !memory_is_readable(page))
            return false;
    memory->asked = (struct memory_range){first, (end + page_bytes - 1) & -page_bytes};
    return true;
}

/* Copies with memcpy, which may read bytes or words in any order, but reads each once. */
bool foreign_memory_copy(struct foreign_memory *memory, void *to, uintptr_t address, size_t size) {
    if (size == 0) /* wherever that is */
        return true;
    if (memory->room)
        return safe_read(address, to, size);
    if (!foreign_memory_has(memory, address, size))
        return false;
    memcpy(to, (const void *)address, size);
    return true;
}

const void *foreign_memory_at(struct foreign_memory *memory, uintptr_t address, size_t size) {
    if (size > FOREIGN_COPY_BYTES)
        return NULL;
    if (memory->room)
        return foreign_memory_copy(memory, memory->room, address, size) ? memory->room : NULL;
    return foreign_memory_has(memory, address, size) ? (const void *)address : NULL;
}
