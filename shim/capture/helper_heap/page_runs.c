#include "page_runs.h"

#include "kernel/profiler_memory.h"

#include <stdatomic.h>

enum {
    READY_STEP = (1 << 20) / PAGE_BYTES, /* pages that become usable at a time: a mebibyte */
    RUNS_TRIED = 32, /* number of runs tried in a list in which some are too short */
    /* the table of pages is mapped in multiples of so many bytes */
    TABLE_SLACK = 4096,
};

/* --- the range --- */

static size_t table_bytes(uint32_t limit) {
    const size_t bytes = ((size_t)limit + 2) * sizeof(struct page);
    return (bytes + TABLE_SLACK - 1) / TABLE_SLACK * TABLE_SLACK;
}

static void cut_off(char *start, const char *end) {
    if (end > start)
        profiler_memory_unmap(start, (size_t)(end - start));
}

/* Reserves more than is needed, to keep the aligned part. */
static char *reserve_aligned(size_t bytes, size_t alignment) {
    char *const range = profiler_memory_reserve(bytes + alignment);
    if (!range)
        return NULL;
    char *const base = range + (-(uintptr_t)range & (alignment - 1));
    cut_off(range, base);
    cut_off(base + bytes, range + bytes + alignment);
    return base;
}

bool page_runs_open(struct page_runs *runs, size_t bytes, size_t alignment) {
    const uint32_t limit = (uint32_t)(bytes / PAGE_BYTES);
    char *const base = reserve_aligned(bytes, alignment);
    struct page *const pages = base ? profiler_memory_take(table_bytes(limit)) : NULL;
    if (!pages) {
        if (base)
            profiler_memory_unmap(base, bytes);
        return false;
    }
    *runs = (struct page_runs){
        .pages = pages, .alignment = alignment, .limit = limit, .ceiling = limit};
    /* a child that another thread forks in between has no range; pairs with the fork's copy alone
     */
    atomic_signal_fence(memory_order_seq_cst);
    runs->base = base;
    return true;
}

/* Forgets the range first, because a child that is forked in between must not unmap it again. */
void page_runs_close(struct page_runs *runs) {
    const struct page_runs closed = *runs;
    runs->base = NULL;
    atomic_signal_fence(memory_order_seq_cst); /* pairs with the fork's copy, as above */
    profiler_memory_unmap(closed.base, (size_t)closed.limit * PAGE_BYTES);
    profiler_memory_unmap(closed.pages, table_bytes(closed.limit));
    *runs = (struct page_runs){.base = NULL};
}

static bool make_ready(struct page_runs *runs, uint32_t top) {
    if (top <= runs->ready)
        return true;
    uint32_t ready = (top + READY_STEP - 1) / READY_STEP * READY_STEP;
    if (ready > runs->limit)
        ready = runs->limit;
    if (!profiler_memory_open(page_runs_address(runs, runs->ready + 1),
                              (size_t)(ready - runs->ready) * PAGE_BYTES))
        return false;
    runs->ready = ready;
    return true;
}

/* --- lists --- */

void page_list_add(struct page_runs *runs, uint32_t *head, uint32_t page) {
    runs->pages[page].before = NO_RUN;
    runs->pages[page].next = *head;
    if (*head)
        runs->pages[*head].before = page;
    *head = page;
}

void page_list_remove(struct page_runs *runs, uint32_t *head, uint32_t page) {
    const uint32_t before = runs->pages[page].before;
    const uint32_t next = runs->pages[page].next;
    if (before)
        runs->pages[before].next = next;
    else
        *head = next;
    if (next)
        runs->pages[next].before = before;
}

static uint32_t list_of(uint32_t count) {
    return 31 - (uint32_t)__builtin_clz(count);
}

/* Marks a run by its first and last page. Pages inside a run are not marked, so that a stale
 * description is never used. */
static void mark_run(struct page_runs *runs, uint32_t first, uint32_t count, enum page_kind kind) {
    struct page *const last = &runs->pages[first + count - 1];
    last->kind = (uint8_t)(kind == PAGE_RUN ? PAGE_RUN_END : kind);
    last->pages = count;
    runs->pages[first].kind = (uint8_t)kind;
    runs->pages[first].pages = count;
}

static void add_free(struct page_runs *runs, uint32_t first, uint32_t count, bool dirty) {
    mark_run(runs, first, count, PAGE_FREE);
    runs->pages[first].dirty = dirty;
    page_list_add(runs, &runs->free[list_of(count)], first);
}

static void remove_free(struct page_runs *runs, uint32_t first) {
    const uint32_t count = runs->pages[first].pages;
    page_list_remove(runs, &runs->free[list_of(count)], first);
    mark_run(runs, first, count, PAGE_INSIDE);
}

/* --- allocating --- */

/* Returns the number of pages from `first` to the next multiple of `align`. */
static uint32_t pages_to_skip(uint32_t first, uint32_t align) {
    return -(first - 1) & (align - 1);
}

static uint32_t first_that_fits(const struct page_runs *runs, uint32_t list, uint32_t count,
                                uint32_t align) {
    uint32_t run = runs->free[list];
    for (int i = 0; run && i < RUNS_TRIED; i++) {
        if (runs->pages[run].pages >= count + pages_to_skip(run, align))
            return run;
        run = runs->pages[run].next;
    }
    return NO_RUN;
}

/* Adds never used pages as a free run, joined with a free run before them. */
static uint32_t page_runs_extend(struct page_runs *runs, uint32_t count, uint32_t align) {
    const struct page *const last = &runs->pages[runs->top];
    const bool joins = runs->top && last->kind == PAGE_FREE;
    const uint32_t first = joins ? runs->top + 1 - last->pages : runs->top + 1;
    const uint64_t wanted = (uint64_t)first - 1 + pages_to_skip(first, align) + count;
    if (wanted > runs->limit || !make_ready(runs, (uint32_t)wanted))
        return NO_RUN;
    const bool dirty = joins && runs->pages[first].dirty;
    if (joins)
        remove_free(runs, first);
    runs->top = (uint32_t)wanted;
    add_free(runs, first, runs->top + 1 - first, dirty);
    return first;
}

uint32_t page_runs_take(struct page_runs *runs, uint32_t count, uint32_t align, enum page_kind kind,
                        bool *zeroed) {
    if (count == 0 || count > runs->limit || runs->used > runs->ceiling ||
        count > runs->ceiling - runs->used)
        return NO_RUN;
    uint32_t run = NO_RUN;
    for (uint32_t list = list_of(count); !run && list < RUN_LISTS; list++)
        run = first_that_fits(runs, list, count, align);
    if (!run)
        run = page_runs_extend(runs, count, align);
    if (!run)
        return NO_RUN;
    const uint32_t length = runs->pages[run].pages;
    const bool dirty = runs->pages[run].dirty;
    const uint32_t skipped = pages_to_skip(run, align);
    remove_free(runs, run);
    if (skipped)
        add_free(runs, run, skipped, dirty);
    if (skipped + count < length)
        add_free(runs, run + skipped + count, length - skipped - count, dirty);
    mark_run(runs, run + skipped, count, kind);
    runs->used += count;
    *zeroed = !dirty;
    return run + skipped;
}

/* --- freeing --- */

static void add_joined(struct page_runs *runs, uint32_t first, uint32_t count) {
    const uint32_t behind = first + count;
    if (behind <= runs->top && runs->pages[behind].kind == PAGE_FREE) {
        count += runs->pages[behind].pages;
        remove_free(runs, behind);
    }
    if (first > 1 && runs->pages[first - 1].kind == PAGE_FREE) {
        const uint32_t joined = runs->pages[first - 1].pages;
        first -= joined;
        count += joined;
        remove_free(runs, first);
    }
    add_free(runs, first, count, true);
}

void page_runs_give(struct page_runs *runs, uint32_t first) {
    const uint32_t count = runs->pages[first].pages;
    mark_run(runs, first, count, PAGE_INSIDE);
    runs->used -= count;
    add_joined(runs, first, count);
}

static bool lengthen_run(struct page_runs *runs, uint32_t first, uint32_t count) {
    const uint32_t old = runs->pages[first].pages;
    const uint32_t behind = first + old;
    const uint32_t more = count - old;
    if (behind > runs->top || runs->pages[behind].kind != PAGE_FREE ||
        runs->pages[behind].pages < more || more > runs->ceiling - runs->used)
        return false;
    const uint32_t length = runs->pages[behind].pages;
    const bool dirty = runs->pages[behind].dirty;
    remove_free(runs, behind);
    if (more < length)
        add_free(runs, behind + more, length - more, dirty);
    mark_run(runs, first, old, PAGE_INSIDE);
    mark_run(runs, first, count, PAGE_RUN);
    runs->used += more;
    return true;
}

bool page_runs_resize(struct page_runs *runs, uint32_t first, uint32_t count) {
    const uint32_t old = runs->pages[first].pages;
    if (count > old)
        return runs->used <= runs->ceiling && lengthen_run(runs, first, count);
    if (count < old) {
        mark_run(runs, first, old, PAGE_INSIDE);
        mark_run(runs, first, count, PAGE_RUN);
        runs->used -= old - count;
        add_joined(runs, first + count, old - count);
    }
    return true;
}

size_t page_runs_trim(struct page_runs *runs) {
    size_t trimmed = 0;
    for (int list = 0; list < RUN_LISTS; list++)
        for (uint32_t run = runs->free[list]; run; run = runs->pages[run].next) {
            const size_t bytes = (size_t)runs->pages[run].pages * PAGE_BYTES;
            /* the kernel refuses to take pages back if the program locks its memory */
            if (!runs->pages[run].dirty ||
                !profiler_memory_drop(page_runs_address(runs, run), bytes))
                continue;
            runs->pages[run].dirty = false;
            trimmed += runs->pages[run].pages;
        }
    return trimmed;
}
