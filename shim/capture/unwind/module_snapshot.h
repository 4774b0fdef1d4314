/* Takes snapshots of the loader's list of objects.
 *
 * A snapshot is an array in a mapping of its own, strings and build ids included: while no thread
 * updates it, its holder reads it without a lock. The data about an object comes from the object's
 * program headers and notes, which are read only if the object's segments show that they can be
 * read.
 *
 * A program may load and unload thousands of objects a second beside hundreds that stay. So a
 * snapshot can be updated in place, and only new objects are read. The loader's counters show which
 * objects are new, because an address does not: if nothing was loaded since the snapshot, every
 * object of the list was there before, in the same order; if nothing was unloaded, the objects of
 * the snapshot are the first ones of the list. If both has happened, an object at the address of
 * another may be another one, and a new snapshot must be taken and compared.
 */
#ifndef OTELPROF_MODULE_SNAPSHOT_H
#define OTELPROF_MODULE_SNAPSHOT_H

#include "harvest.h"

#include <link.h>
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
    size_t capacity; /* room for so many modules */
    /* where the program headers of each module are; used only for the comparison with the list */
    const ElfW(Phdr) * *headers;
    char *text; /* unused room for strings */
    char *text_end;
    bool is_whole; /* each object of the list is a module, in the order of the list */
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

enum snapshot_update {
    SNAPSHOT_CURRENT, /* the loader's counters have not changed */
    SNAPSHOT_GREW,   /* the modules from the former count on are new; their intervals are not set */
    SNAPSHOT_SHRANK, /* modules that are marked as unloaded have left the list */
    SNAPSHOT_OUTDATED /* unchanged: a new one must be taken and compared with it */
};

/* Updates a snapshot that no other thread uses. Calls `begin(arg)` before it reads the list, if the
 * counters have changed. Context: as module_snapshot_take(). */
enum snapshot_update module_snapshot_update(struct module_snapshot *snapshot,
                                            const struct module_names *names,
                                            void (*begin)(void *arg), void *arg);

/* Removes the modules that are marked as unloaded. Context: any. */
void module_snapshot_remove_unloaded(struct module_snapshot *snapshot);

/* Removes all modules, so that the next update finds the snapshot outdated. Context: any. */
static inline void module_snapshot_forget_all(struct module_snapshot *snapshot) {
    snapshot->count = 0;
    snapshot->is_whole = false;
    snapshot->adds = UINT64_MAX;
}

/* Returns true if both are the same file at the same address. */
bool module_is_same(const struct harvest_module *a, const struct harvest_module *b);

#endif
