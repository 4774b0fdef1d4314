#include "python_reader.h"

#include "safe_read.h"

#include <string.h>

static const uintptr_t highest_address = 1ULL << 56; /* end of programs' addresses: frame.h */
static const uintptr_t page_bytes = ARCH_SMALLEST_PAGE_BYTES;

static bool is_possible(uintptr_t address, size_t size) {
    return address >= LOWEST_MAPPED && address < highest_address && size < highest_address;
}

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

bool python_is_readable(struct python_reader *reader, uintptr_t address, size_t size) {
    if (!is_possible(address, size))
        return false;
    if (address >= reader->known.low && address < reader->known.high &&
        size <= reader->known.high - address)
        return true;
    for (uintptr_t page = address & -page_bytes; page < address + size; page += page_bytes) {
        uintptr_t *const known =
            &reader->pages[page / ARCH_SMALLEST_PAGE_BYTES % PYTHON_READER_PAGES];
        if (*known == page)
            continue;
        if (!memory_is_readable(page))
            return false;
        *known = page;
    }
    return true;
}

bool python_read(struct python_reader *reader, uintptr_t address, void *to, size_t size) {
    if (reader->of_another)
        return is_possible(address, size) &&
               (reader->copies ? python_pages_read(reader->copies, address, to, size)
                               : safe_read(address, to, size));
    if (!python_is_readable(reader, address, size))
        return false;
    memcpy(to, (const void *)address, size);
    return true;
}

bool python_read_word(struct python_reader *reader, uintptr_t address, uintptr_t *value) {
    return address % sizeof *value == 0 && python_read(reader, address, value, sizeof *value);
}
