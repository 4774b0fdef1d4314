/* What malloc and free read of ours on the way that is not sampled, in one cache line: a program
 * with a large working set finds it less often in its nearest cache than a benchmark does. On
 * cc1plus that, and hooks that begin a line, took 13 % off the time in our hooks.
 *
 * It is the allocator behind us, and the filter of addresses that free must look at. The first call
 * of a function of the allocator looks for all of them (next_symbol.h): another preload's are
 * found, and a program may bring its own, so never `__libc_malloc`.
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

/* Hidden: malloc reads it without a look at the table of global offsets. Context: any.
 * Async-signal-safe: yes. */
extern struct allocation_path allocation_path __attribute__((visibility("hidden")));

/* Looks for the allocator, which the first call of it does otherwise. Context: calm; idempotent. */
void allocation_path_resolve(void);

/* false: the program's malloc is not ours (it brings its own, or we were not preloaded), so no
 * allocation is seen. Context: calm, at start. */
bool allocation_path_is_used(void);

/* Opens the filter, if it is not open yet. false: no memory. Context: calm. */
bool allocation_path_has_filter(void);

#endif
