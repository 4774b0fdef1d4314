/* Reads the loader's counters of the objects that it has loaded and unloaded since the start: as
 * long as both are unchanged, the loader's list is the same. */
#ifndef OTELPROF_LOADER_COUNTERS_H
#define OTELPROF_LOADER_COUNTERS_H

#include <stdint.h>

struct loader_counters {
    uint64_t adds;
    uint64_t subs;
};

/* Reads both counters. Context: calm; takes the lock of the loader's list. */
struct loader_counters loader_counters_read(void);

#endif
