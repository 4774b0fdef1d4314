/* Takes snapshots of the loader's list of objects.
 *
 * A snapshot is an immutable array in a mapping of its own, strings and build ids included: its
 * holder reads it without a lock. The data about an object comes from the object's program headers
 * and notes, which are read only if the object's segments show that they can be read.
 */
#ifndef OTELPROF_MODULE_SNAPSHOT_H
#define OTELPROF_MODULE_SNAPSHOT_H

#include "harvest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODULE_PATH_BYTES = 512 };

struct module_snapshot {
    size_t mapping_size; /* Size of this struct's own mapping. */
    size_t count;
    uint64_t adds; /* the loader's counters: objects loaded so far, and objects unloaded so far */
    uint64_t subs;
    struct module_snapshot *retired_next;
    uint64_t retired_epoch;
    struct harvest_module modules[]; /* their intervals are not set */
};

/* Holds names for objects that the loader names relatively, or not at all. */
struct module_names {
    char start_directory[MODULE_PATH_BYTES];
    char executable[MODULE_PATH_BYTES]; /* path of the executable, or "" */
};

/* Takes a snapshot of the loaded objects; NULL: no memory. The caller frees it with
 * profiler_memory_unmap(). Context: calm; takes the loader's lock. */
struct module_snapshot *module_snapshot_take(const struct module_names *names);

/* Returns true if the loader's counters have not changed since the snapshot. Context: as
 * module_snapshot_take(). */
bool module_snapshot_is_current(const struct module_snapshot *snapshot);

/* Returns true if both are the same file at the same address. */
bool module_is_same(const struct harvest_module *a, const struct harvest_module *b);

#endif
