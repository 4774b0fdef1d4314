#include "python_reader.h"

#include "kernel/profiler_memory.h"
#include "safe_read.h"
#include "seccomp_state.h"

#include <string.h>

/* where the address space of programs ends: frame.h */
static const uintptr_t highest_address = 1ULL << 56;

static bool is_possible(uintptr_t address, size_t size) {
    return address >= LOWEST_MAPPED && address < highest_address && size < highest_address;
}

/* --- room for copies --- */

struct python_page_sets *python_page_sets_new(void) {
    return profiler_memory_map(whole_pages(sizeof(struct python_page_sets)));
}

void python_page_sets_after_fork(struct python_page_sets *sets) {
    profiler_memory_reset_in_child(sets, whole_pages(sizeof *sets));
}

struct python_pages *python_page_sets_take(struct python_page_sets *sets) {
    for (uint32_t i = 0; sets && i < PYTHON_PAGE_SETS; i++) {
        const uint32_t bit = 1u << i;
        /* pairs with the release in python_page_sets_give() */
        if (atomic_load_explicit(&sets->taken, memory_order_relaxed) & bit ||
            atomic_fetch_or_explicit(&sets->taken, bit, memory_order_acquire) & bit)
            continue;
        python_pages_forget(&sets->sets[i]);
        sets->sets[i].is_filtered = seccomp_is_filtered();
        return &sets->sets[i];
    }
    return NULL;
}

void python_page_sets_give(struct python_page_sets *sets, struct python_pages *pages) {
    if (pages) /* pairs with the acquire in python_page_sets_take() */
        atomic_fetch_and_explicit(&sets->taken, ~(1u << (pages - sets->sets)),
                                  memory_order_release);
}

void python_pages_forget(struct python_pages *pages) {
    memset(pages->addresses, 0, sizeof pages->addresses);
}

/* --- copying --- */

static bool copy_now(const struct python_reader *reader, uintptr_t address, void *to, size_t size) {
    if (reader->of_another)
        return safe_read(address, to, size);
    return safe_read_here(address, to, size,
                          reader->copies ? reader->copies->is_filtered : seccomp_is_filtered());
}

/* Returns the page of an address; NULL if the page cannot be read. */
static const uint8_t *page_at(const struct python_reader *reader, uintptr_t address) {
    struct python_pages *const pages = reader->copies;
    const size_t place = address / ARCH_SMALLEST_PAGE_BYTES % PYTHON_PAGES;
    uint8_t *const bytes = pages->bytes[place];
    if (pages->addresses[place] == address)
        return bytes;
    const bool is_there = copy_now(reader, address, bytes, ARCH_SMALLEST_PAGE_BYTES);
    pages->addresses[place] = is_there ? address : 0;
    return is_there ? bytes : NULL;
}

static bool read_pages(const struct python_reader *reader, uintptr_t address, void *to,
                       size_t size) {
    size_t done = 0;
    while (done < size) {
        const size_t offset = (address + done) % ARCH_SMALLEST_PAGE_BYTES;
        const size_t rest = ARCH_SMALLEST_PAGE_BYTES - offset;
        const size_t part = size - done < rest ? size - done : rest;
        const uint8_t *const page = page_at(reader, address + done - offset);
        if (!page)
            return false;
        memcpy((uint8_t *)to + done, page + offset, part);
        done += part;
    }
    return true;
}

bool python_read(struct python_reader *reader, uintptr_t address, void *to, size_t size) {
    if (!is_possible(address, size))
        return false;
    if (address >= reader->known.low && address < reader->known.high &&
        size <= reader->known.high - address) {
        memcpy(to, (const void *)address, size);
        return true;
    }
    return reader->copies ? read_pages(reader, address, to, size)
                          : copy_now(reader, address, to, size);
}

const uint8_t *python_view(struct python_reader *reader, uintptr_t address, size_t size) {
    const size_t offset = address % ARCH_SMALLEST_PAGE_BYTES;
    if (!is_possible(address, size) || !reader->copies || size > PYTHON_VIEW_BYTES)
        return NULL;
    if (offset + size > ARCH_SMALLEST_PAGE_BYTES)
        return read_pages(reader, address, reader->copies->view, size) ? reader->copies->view
                                                                       : NULL;
    const uint8_t *const page = page_at(reader, address - offset);
    return page ? page + offset : NULL;
}

bool python_read_word(struct python_reader *reader, uintptr_t address, uintptr_t *value) {
    return address % sizeof *value == 0 && python_read(reader, address, value, sizeof *value);
}
