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

/* --- parts of a page --- */

enum {
    PART_BITS = 6, /* in the number of a part */
    PARTS = 1 << PART_BITS,
    PART_BYTES = ARCH_SMALLEST_PAGE_BYTES / PARTS,
};
_Static_assert(1 << 2 * PART_BITS <= ARCH_SMALLEST_PAGE_BYTES, "two numbers fit below a page");

/* Returns the bits of the parts `first` to `last`. */
static uint64_t python_parts(size_t first, size_t last) {
    return UINT64_MAX << first & UINT64_MAX >> (PARTS - 1 - last);
}

/* Returns the entry of a page. Where there is no room for one more, all pages are forgotten. */
static struct python_page *page_entry(struct python_pages *pages, uintptr_t page) {
    const size_t first = page / ARCH_SMALLEST_PAGE_BYTES % PYTHON_PLACES;
    size_t place = first;
    for (; pages->places[place]; place = (place + 1) % PYTHON_PLACES) {
        struct python_page *const known = &pages->pages[pages->places[place] - 1];
        if (known->address == page)
            return known;
    }
    if (pages->count == PYTHON_PAGES) {
        python_pages_forget(pages);
        place = first;
    }
    struct python_page *const entry = &pages->pages[pages->count++];
    pages->places[place] = (uint8_t)pages->count;
    *entry = (struct python_page){.address = page};
    return entry;
}

/* --- the walk before --- */

static struct python_last_walk *last_walk(struct python_page_sets *sets, uint32_t tid) {
    return &sets->last[tid % PYTHON_LAST_WALKS];
}

/* Lists the ranges that the thread's last walk has read. Returns their number. */
static size_t last_ranges(const struct python_last_walk *last, struct python_pages *pages) {
    size_t count = 0;
    size_t bytes = 0;
    if (atomic_load_explicit(&last->tid, memory_order_relaxed) != pages->tid)
        return 0;
    for (; count < PYTHON_PAGES; count++) {
        const uint64_t word = atomic_load_explicit(&last->pages[count], memory_order_relaxed);
        const uintptr_t page = word & ~(uint64_t)(ARCH_SMALLEST_PAGE_BYTES - 1);
        const size_t first = word >> PART_BITS & (PARTS - 1);
        const size_t size = ((word & (PARTS - 1)) - first + 1) * PART_BYTES;
        if (!word || bytes + size > PYTHON_AHEAD_BYTES)
            break;
        pages->ranges[count] = (struct iovec){(uint8_t *)page + first * PART_BYTES, size};
        bytes += size;
    }
    return count;
}

/* Copies the memory that the thread's last walk has read. A page that can no longer be read ends
 * the copying: this walk copies that page and the later ones when it needs them. Behind a filter,
 * each page is copied when this walk needs it, because it may be gone. */
static void copy_last_walk(const struct python_last_walk *last, struct python_pages *pages) {
    const size_t count = last_ranges(last, pages);
    const size_t copied =
        count == 0 ? 0
                   : safe_read_ranges_here(pages->ranges, count, pages->ahead, pages->is_filtered);
    const uint8_t *copy = pages->ahead;
    for (size_t i = 0; i < count; i++) {
        const uintptr_t start = (uintptr_t)pages->ranges[i].iov_base;
        const size_t offset = start % ARCH_SMALLEST_PAGE_BYTES;
        const size_t size = pages->ranges[i].iov_len;
        struct python_page *const entry = page_entry(pages, start - offset);
        entry->expected = python_parts(offset / PART_BYTES, (offset + size) / PART_BYTES - 1);
        entry->copied = i < copied ? entry->expected : 0;
        entry->copy = copy - offset;
        copy += size;
    }
}

static void remember_walk(struct python_last_walk *last, const struct python_pages *pages) {
    size_t count = 0;
    for (size_t i = 0; i < pages->count; i++) {
        const struct python_page *const page = &pages->pages[i];
        if (!page->read)
            continue;
        const uint64_t first = (uint64_t)__builtin_ctzll(page->read);
        const uint64_t end = PARTS - 1 - (uint64_t)__builtin_clzll(page->read);
        atomic_store_explicit(&last->pages[count++], page->address | first << PART_BITS | end,
                              memory_order_relaxed);
    }
    atomic_store_explicit(&last->tid, pages->tid, memory_order_relaxed);
    if (count < PYTHON_PAGES)
        atomic_store_explicit(&last->pages[count], 0, memory_order_relaxed);
}

/* --- room for copies --- */

struct python_page_sets *python_page_sets_new(void) {
    return profiler_memory_map(whole_pages(sizeof(struct python_page_sets)));
}

void python_page_sets_after_fork(struct python_page_sets *sets) {
    profiler_memory_reset_in_child(sets, whole_pages(sizeof *sets));
}

static struct python_pages *take_a_set(struct python_page_sets *sets) {
    for (uint32_t i = 0; sets && i < PYTHON_PAGE_SETS; i++) {
        const uint32_t bit = 1u << i;
        /* pairs with the release in python_page_sets_give() */
        if (!(atomic_load_explicit(&sets->taken, memory_order_relaxed) & bit) &&
            !(atomic_fetch_or_explicit(&sets->taken, bit, memory_order_acquire) & bit))
            return &sets->sets[i];
    }
    return NULL;
}

struct python_pages *python_page_sets_take(struct python_page_sets *sets, uint32_t tid) {
    struct python_pages *const pages = take_a_set(sets);
    if (!pages)
        return NULL;
    python_pages_forget(pages);
    pages->is_filtered = seccomp_is_filtered();
    pages->tid = tid;
    copy_last_walk(last_walk(sets, tid), pages);
    return pages;
}

void python_page_sets_give(struct python_page_sets *sets, struct python_pages *pages) {
    if (!pages)
        return;
    /* a child that a handler has forked during the walk finds all of this memory cleared: it
     * remembers an empty walk of no thread */
    remember_walk(last_walk(sets, pages->tid), pages);
    /* pairs with the acquire in take_a_set() */
    atomic_fetch_and_explicit(&sets->taken, ~(1u << (pages - sets->sets)), memory_order_release);
}

void python_pages_forget(struct python_pages *pages) {
    memset(pages->places, 0, sizeof pages->places);
    pages->count = 0;
}

/* --- copying --- */

static bool copy_now(const struct python_reader *reader, uintptr_t address, void *to, size_t size) {
    if (reader->of_another)
        return safe_read(address, to, size);
    return safe_read_here(address, to, size,
                          reader->copies ? reader->copies->is_filtered : seccomp_is_filtered());
}

/* Copies the whole page, because a system call costs more than the bytes of a page. Behind a
 * filter, where the call only checks the page, copies the wanted parts and those that the walk
 * before has read. Returns false if they cannot be read. */
static bool copy_parts(const struct python_reader *reader, struct python_page *entry,
                       uint64_t parts) {
    struct python_pages *const pages = reader->copies;
    uint8_t *const bytes = pages->bytes[entry - pages->pages];
    const bool is_whole = reader->of_another || !pages->is_filtered || !entry->expected;
    parts = is_whole ? UINT64_MAX : parts | entry->expected;
    const size_t offset = (size_t)__builtin_ctzll(parts) * PART_BYTES;
    const size_t end = ARCH_SMALLEST_PAGE_BYTES - (size_t)__builtin_clzll(parts) * PART_BYTES;
    const bool is_there = copy_now(reader, entry->address + offset, bytes + offset, end - offset);
    entry->copied = is_there ? python_parts(offset / PART_BYTES, end / PART_BYTES - 1) : 0;
    entry->copy = bytes;
    entry->expected = 0;
    return is_there;
}

/* Returns where the copy of the page's first byte would be; the copy has at least `size` bytes from
 * `offset` on. Returns NULL if these cannot be read. */
static const uint8_t *page_with(const struct python_reader *reader, uintptr_t page, size_t offset,
                                size_t size) {
    struct python_page *const entry = page_entry(reader->copies, page);
    const size_t last = offset + (size ? size - 1 : 0);
    const uint64_t parts = python_parts(offset / PART_BYTES, last / PART_BYTES);
    if (parts & ~entry->copied && !copy_parts(reader, entry, parts))
        return NULL;
    entry->read |= parts;
    return entry->copy;
}

static bool read_pages(const struct python_reader *reader, uintptr_t address, void *to,
                       size_t size) {
    size_t done = 0;
    while (done < size) {
        const size_t offset = (address + done) % ARCH_SMALLEST_PAGE_BYTES;
        const size_t rest = ARCH_SMALLEST_PAGE_BYTES - offset;
        const size_t part = size - done < rest ? size - done : rest;
        const uint8_t *const page = page_with(reader, address + done - offset, offset, part);
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
    const uint8_t *const page = page_with(reader, address - offset, offset, size);
    return page ? page + offset : NULL;
}

bool python_read_word(struct python_reader *reader, uintptr_t address, uintptr_t *value) {
    return address % sizeof *value == 0 && python_read(reader, address, value, sizeof *value);
}
