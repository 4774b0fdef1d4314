/* Holds the profiler's data that malloc and free read when they do not sample, in one cache line,
 * because a program with a large working set evicts the line more often than a benchmark does. On
 * cc1plus this line, and hooks that begin a cache line, saved 13 % of the time in the hooks.
 *
 * The data is the next allocator, and the filter of addresses that free checks. The first call of
 * an allocator function finds the next allocator (next_symbol.h). It is never assumed to be
 * `__libc_malloc`, because another preloaded library or the program may define malloc.
 */
#ifndef OTELPROF_ALLOCATION_PATH_H
#define OTELPROF_ALLOCATION_PATH_H

#include "address_filter.h"

#include <stddef.h>

enum { CACHE_LINE = 64 };

struct next_allocator {
#define IN_ALLOCATOR(result, name, parameters) result(*name) parameters;
#include "../../hooks/hooked.def"
};

struct allocation_path {
    /* filter of the addresses of sampled objects that are live */
    _Alignas(CACHE_LINE) struct address_filter filter;
    struct next_allocator next;
};
_Static_assert(offsetof(struct allocation_path, next.memalign) <= CACHE_LINE,
               "malloc, free, calloc and realloc");

/* The symbol is hidden, so that malloc reads it without the table of global offsets. Context: any.
 * Async-signal-safe: yes. */
extern struct allocation_path allocation_path __attribute__((visibility("hidden")));

/* Finds the next allocator now, instead of at the first allocation. Context: calm; idempotent. */
void allocation_path_resolve(void);

/* Returns true if the program calls the profiler's malloc. If it does not (the program defines its
 * own, or the profiler was not preloaded), the profiler sees no allocation. Context: calm, at
 * start. */
bool allocation_path_is_used(void);

/* Opens the filter, if it is not open yet. Returns false if there is no memory. Context: calm. */
bool allocation_path_has_filter(void);

/* Makes the filter's counters of a range of addresses writable. Returns false if the kernel
 * refuses; then address_filter_change() by 1 and address_filter_stick() must not be called for that
 * range. Context: any. Async-signal-safe: yes. */
bool allocation_path_may_count(const void *from, size_t bytes);

#endif
