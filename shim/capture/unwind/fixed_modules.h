/* Lists the objects that can never be unloaded: the executable, and the libraries that the loader
 * loaded with it.
 *
 * dlclose() never unmaps them (glibc unmaps only objects that dlopen loaded), so a signal handler
 * may read their unwind tables at any time without a call of the loader. An object counts as fixed
 * if it is the executable, the vDSO, libotelprof.so itself, or is DT_NEEDED, directly or not, by
 * one of these. A library that was preloaded beside the profiler is not found in this way, and is
 * treated like a library that may be unloaded.
 */
#ifndef OTELPROF_FIXED_MODULES_H
#define OTELPROF_FIXED_MODULES_H

#include "cfi.h"

#include <stdbool.h>
#include <stdint.h>

enum { FIXED_MODULES = 188 }; /* further objects are treated like libraries that may be unloaded */

struct fixed_modules {
    uint32_t count;
    struct cfi_tables tables[FIXED_MODULES]; /* sorted by address; constant after the start */
};

/* Fills the list; `own` is any address in libotelprof.so. Context: calm, once, at the start; takes
 * the loader's lock. */
void fixed_modules_find(struct fixed_modules *fixed, uintptr_t own);

/* Returns the tables of the fixed object that spans `pc`, or NULL. Cost: about 5 ns. Context: any.
 * Async-signal-safe: yes. */
static inline const struct cfi_tables *fixed_modules_at(const struct fixed_modules *fixed,
                                                        uintptr_t pc) {
    uint32_t low = 0;
    uint32_t high = fixed->count;
    while (low < high) { /* searches the first object that ends beyond pc */
        const uint32_t middle = (low + high) / 2;
        if (fixed->tables[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == fixed->count || pc < fixed->tables[low].start)
        return NULL;
    return &fixed->tables[low];
}

#endif
