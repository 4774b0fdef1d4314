#include "python_reader.h"

#include "arch_memory.h"
#include "safe_read.h"

#include <string.h>

static const uintptr_t highest_address = 1ULL << 56; /* end of programs' addresses: frame.h */
static const uintptr_t page_bytes = ARCH_SMALLEST_PAGE_BYTES;

static bool is_possible(uintptr_t address, size_t size) {
    return address >= LOWEST_MAPPED && address < highest_address && size < highest_address;
}

static bool is_known(const struct python_reader *reader, uintptr_t address, size_t size) {
    return address >= reader->known.low && address < reader->known.high &&
           size <= reader->known.high - address;
}

static bool ask_for_page(struct python_reader *reader, uintptr_t page) {
    if (!memory_is_readable(page))
        return false;
    reader->pages[page / ARCH_SMALLEST_PAGE_BYTES % PYTHON_READER_PAGES] = page;
    return true;
}

static bool has_page(struct python_reader *reader, uintptr_t page) {
    return reader->pages[page / ARCH_SMALLEST_PAGE_BYTES % PYTHON_READER_PAGES] == page ||
           ask_for_page(reader, page);
}

static bool has_pages(struct python_reader *reader, uintptr_t address, size_t size) {
    const uintptr_t end = address + size;
    for (uintptr_t page = address & -page_bytes; page < end; page += page_bytes)
        if (!has_page(reader, page))
            return false;
    return true;
}

bool python_is_readable(struct python_reader *reader, uintptr_t address, size_t size) {
    return is_possible(address, size) &&
           (is_known(reader, address, size) || has_pages(reader, address, size));
}

static bool python_reader_copy(const struct python_reader *reader, uintptr_t address, void *to,
                               size_t size) {
    if (!is_possible(address, size))
        return false;
    return reader->copies ? python_pages_read(reader->copies, address, to, size)
                          : safe_read(address, to, size);
}

bool python_read(struct python_reader *reader, uintptr_t address, void *to, size_t size) {
    if (reader->of_another)
        return python_reader_copy(reader, address, to, size);
    if (!python_is_readable(reader, address, size))
        return false;
    memcpy(to, (const void *)address, size);
    return true;
}

bool python_read_word(struct python_reader *reader, uintptr_t address, uintptr_t *value) {
    return address % sizeof *value == 0 && python_read(reader, address, value, sizeof *value);
}
