#include "python_pages.h"

#include "safe_read.h"

#include <string.h>

void python_pages_forget(struct python_pages *pages) {
    memset(pages->addresses, 0, sizeof pages->addresses);
}

/* NULL: it cannot be read. */
static const uint8_t *page_at(struct python_pages *pages, uintptr_t address) {
    const size_t place = address / ARCH_SMALLEST_PAGE_BYTES % PYTHON_PAGES;
    uint8_t *const bytes = pages->bytes[place];
    if (pages->addresses[place] == address)
        return bytes;
    const bool is_there = safe_read(address, bytes, ARCH_SMALLEST_PAGE_BYTES);
    pages->addresses[place] = is_there ? address : 0;
    return is_there ? bytes : NULL;
}

bool python_pages_read(struct python_pages *pages, uintptr_t address, void *to, size_t size) {
    size_t done = 0;
    while (done < size) {
        const size_t offset = (address + done) % ARCH_SMALLEST_PAGE_BYTES;
        const size_t rest = ARCH_SMALLEST_PAGE_BYTES - offset;
        const size_t part = size - done < rest ? size - done : rest;
        const uint8_t *const page = page_at(pages, address + done - offset);
        if (!page)
            return false;
        memcpy((uint8_t *)to + done, page + offset, part);
        done += part;
    }
    return true;
}
