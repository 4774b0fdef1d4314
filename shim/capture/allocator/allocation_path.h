/* The profiler's data that malloc and free read when they do not sample, in one cache line: a
 * program with a large working set has it in its nearest cache less often than a benchmark does. On
 * cc1plus that, and hooks that begin a line, saved 13 % of the time in the hooks.
 *
 * The data is the next allocator, and the filter of addresses that free checks. The first call of
 * an allocator function finds all of them (next_symbol.h). Another preloaded library may define
 * them, and so may a program: so the next allocator is never taken to be `__libc_malloc`.
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
    _Alignas(CACHE_LINE) struct address_filter filter; /* of the sampled objects that are live */
    struct next_allocator next;
};
_Static_assert(offsetof(struct allocation_path, next.memalign) <= CACHE_LINE,
               "malloc, free, calloc and realloc");

/* Hidden: malloc reads it without the table of global offsets. Context: any. Async-signal-safe:
 * yes. */
extern struct allocation_path allocation_path __attribute__((visibility("hidden")));

/* Finds the next allocator; otherwise its first call does. Context: calm; idempotent. */
void allocation_path_resolve(void);

/* Returns false if the program's malloc is not the profiler's (it defines its own, or the profiler
 * was not preloaded), so that no allocation is seen. Context: calm, at start. */
bool allocation_path_is_used(void);

/* Opens the filter, if it is not open yet. Returns false if there is no memory. Context: calm. */
bool allocation_path_has_filter(void);

/* Makes the filter's counters of a range of addresses writable. Returns false if that is refused:
 * address_filter_change() by 1 and address_filter_stick() are not allowed there then. Context: any.
 * Async-signal-safe: yes. */
bool allocation_path_may_count(const void *from, size_t bytes);

#endif
