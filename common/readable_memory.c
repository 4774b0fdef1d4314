#include "readable_memory.h"

#include "arch_memory.h"

size_t readable_memory(uintptr_t address, size_t size) {
    const uintptr_t page_bytes = ARCH_SMALLEST_PAGE_BYTES;
    uintptr_t page = address & -page_bytes;
    while (page < address + size && word_is_readable(page))
        page += page_bytes;
    if (page <= address)
        return 0;
    return page - address < size ? page - address : size;
}
