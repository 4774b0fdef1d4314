/* Allocates runs of whole pages from one reserved range of addresses.
 *
 * The range is reserved once and becomes usable a mebibyte at a time, so its size is a ceiling and
 * costs nothing by itself. Each page has a description outside of the pages, which an overrun of an
 * object does not reach. Free runs are listed by the power of two of their length, and neighbouring
 * free runs are joined at once. The caller must not let two threads call the functions at a time.
 * Context: any. Async-signal-safe: yes, if no call interrupts another.
 */
#ifndef OTELPROF_PAGE_RUNS_H
#define OTELPROF_PAGE_RUNS_H

#include "arch_memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PAGE_BYTES = ARCH_LARGEST_PAGE_BYTES,
    RUN_LISTS = 20,
    NO_RUN = 0,
    OBJECTS_PER_PAGE = PAGE_BYTES / 16
};

enum page_kind {
    PAGE_INSIDE, /* inside a run, or never used */
    PAGE_FREE,   /* first or last of a free run */
    PAGE_SLAB,   /* divided into objects of one size */
    PAGE_RUN,    /* first page of a run that is one object */
    PAGE_RUN_END,
};

/* Describes a page. Pages are numbered from 1; 0 means no page. */
struct page {
    uint32_t pages; /* on the first and last page of a run: the number of its pages */
    uint8_t kind;   /* enum page_kind */
    uint8_t size_class;
    bool dirty;      /* set for a free run that may hold old data */
    uint16_t used;   /* for a slab: number of objects in use */
    uint32_t next;   /* next page in a list of free runs, or of slabs with free objects */
    uint32_t before; /* previous page in that list */
    uint32_t work;   /* for a page_heap: the number of the piece of work that the page belongs to */
    uint64_t taken[OBJECTS_PER_PAGE / 64];
    uint64_t of_work[OBJECTS_PER_PAGE / 64];
};

struct page_runs {
    char *base;         /* address of page 1 */
    struct page *pages; /* [1] describes page 1 */
    size_t alignment;   /* alignment of the base */
    uint32_t limit;     /* number of pages reserved */
    uint32_t ready;     /* number of pages that may be written to */
    uint32_t top;       /* number of pages that were ever used */
    uint32_t used;      /* number of pages in runs that are taken */
    uint32_t ceiling;   /* limit of `used` */
    uint32_t free[RUN_LISTS];
};

/* Reserves `bytes`, a multiple of a mebibyte, at a multiple of `alignment`, a power of two of at
 * least a page. Returns false if the kernel refused. */
bool page_runs_open(struct page_runs *runs, size_t bytes, size_t alignment);
void page_runs_close(struct page_runs *runs);

/* Allocates a run of `count` pages of `kind` that begins at a multiple of `align` pages from the
 * base. `*zeroed`: set to true if the run holds zeros only. Returns NO_RUN beyond the ceiling, or
 * if the kernel refused. */
uint32_t page_runs_take(struct page_runs *runs, uint32_t count, uint32_t align, enum page_kind kind,
                        bool *zeroed);
void page_runs_give(struct page_runs *runs, uint32_t first);

/* Changes the length of a PAGE_RUN in place. Returns false if it cannot grow. */
bool page_runs_resize(struct page_runs *runs, uint32_t first, uint32_t count);

/* Gives the memory of all free runs back to the kernel. Returns the number of pages. */
size_t page_runs_trim(struct page_runs *runs);

static inline void *page_runs_address(const struct page_runs *runs, uint32_t page) {
    return runs->base + (size_t)(page - 1) * PAGE_BYTES;
}

/* Returns the page of an address; NO_RUN: not in this range. */
static inline uint32_t page_runs_page(const struct page_runs *runs, const void *address) {
    const uintptr_t offset = (uintptr_t)address - (uintptr_t)runs->base;
    return offset < (uintptr_t)runs->limit * PAGE_BYTES ? (uint32_t)(offset / PAGE_BYTES) + 1
                                                        : NO_RUN;
}

/* Adds a page to a doubly linked list through `next` and `before`. */
void page_list_add(struct page_runs *runs, uint32_t *head, uint32_t page);
void page_list_remove(struct page_runs *runs, uint32_t *head, uint32_t page);

#endif
