#include "memory_pages.h"

#include "arch_memory.h"
#include "safe_read.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEPT_PAGES = 64, /* 256 KiB: the tables that the frames of a few modules need */
    PAGE_BYTES = ARCH_SMALLEST_PAGE_BYTES,
};

struct memory_pages {
    uint64_t starts[KEPT_PAGES]; /* UINT64_MAX: no page */
    uint32_t last;               /* page of the last read */
    uint32_t next;               /* page that is replaced next */
    uint8_t bytes[KEPT_PAGES][PAGE_BYTES];
};

struct memory_pages *memory_pages_open(void) {
    struct memory_pages *const pages = malloc(sizeof *pages);
    if (!pages)
        return NULL;
    memset(pages->starts, 0xff, sizeof pages->starts);
    pages->last = 0;
    pages->next = 0;
    return pages;
}

void memory_pages_close(struct memory_pages *pages) {
    free(pages);
}

/* Returns the copy of the page that starts there; NULL: the page is not readable. */
static const uint8_t *page_at(struct memory_pages *pages, uint64_t start) {
    if (pages->starts[pages->last] == start)
        return pages->bytes[pages->last];
    for (uint32_t i = 0; i < KEPT_PAGES; i++)
        if (pages->starts[i] == start)
            return pages->bytes[pages->last = i];
    const uint32_t place = pages->next;
    pages->starts[place] = UINT64_MAX;
    if (!safe_read(start, pages->bytes[place], PAGE_BYTES))
        return NULL;
    pages->starts[place] = start;
    pages->next = (place + 1) % KEPT_PAGES;
    return pages->bytes[pages->last = place];
}

bool memory_pages_read(struct memory_pages *pages, uint64_t address, void *to, size_t size) {
    size_t done = 0;
    while (done < size) {
        const uint64_t from = address + done;
        const uint64_t within = from % PAGE_BYTES;
        const size_t rest = PAGE_BYTES - (size_t)within;
        const size_t part = size - done < rest ? size - done : rest;
        const uint8_t *const page = page_at(pages, from - within);
        if (!page)
            return false;
        memcpy((uint8_t *)to + done, page + within, part);
        done += part;
    }
    return true;
}
