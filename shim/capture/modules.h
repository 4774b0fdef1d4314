/* The loaded objects: which one an address lies in, and where its unwind tables are.
 *
 * Signal handlers ask with modules_tables(). On glibc 2.35 and later the answer comes from
 * _dl_find_object(), which the C library documents as async-signal-safe: a lock-free look-up that
 * knows a library from the moment it is mapped to the moment it is unmapped. On an older glibc it
 * comes from the snapshot.
 * The snapshot is an immutable array, rebuilt by calm code (at start, before and after dlclose, and
 * by the helper at each harvest) and handed to the flush world for symbolization. A library that
 * was unloaded stays in it, marked, until the harvest after next, so that samples taken in it can
 * still be named.
 */
#ifndef OTELPROF_MODULES_H
#define OTELPROF_MODULES_H

#include "cfi.h"
#include "harvest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct module_snapshot {
    size_t mapping_size; /* of this struct's own mapping, strings and build ids included */
    size_t count;
    uint64_t adds; /* the loader's counters when it was taken */
    uint64_t subs;
    struct module_snapshot *retired_next;
    uint64_t retired_epoch;
    struct harvest_module modules[];
};

struct modules {
    _Atomic(struct module_snapshot *) current;
    struct module_snapshot *retired; /* old ones that somebody may still read; under `lock` */
    struct module_snapshot *pinned;  /* the one that the helper works with; under `lock` */
    uint64_t epoch;                  /* harvests so far; under `lock` */
    pthread_mutex_t lock;            /* among calm code; made anew in a forked child */
    int (*find_object)(void *address, void *result); /* _dl_find_object, NULL before glibc 2.35 */
    char start_directory[512];                       /* for objects preloaded by a relative path */
};

/* Takes the first snapshot. false: no memory. Context: calm, single-threaded. */
bool modules_start(struct modules *modules);

/* Takes a new snapshot if the loader's counters moved, unless another thread is at it. Context:
 * calm; takes the loader's lock. */
void modules_refresh(struct modules *modules);

/* Begins a harvest: takes a new snapshot if needed and returns it; it stays valid until the next
 * call. Context: the helper. */
const struct module_snapshot *modules_pin(struct modules *modules);

/* In a forked child: the lock may have been held by a thread that is no more. */
void modules_after_fork(struct modules *modules);

/* The unwind tables that cover `pc`. false: no loaded object does; true with tables->header == 0:
 * one does but has no tables. Context: any. Async-signal-safe: yes. */
bool modules_tables(const struct modules *modules, uintptr_t pc, struct cfi_tables *tables);

/* The module of the snapshot that holds `pc`, or NULL. Context: any. Async-signal-safe: yes. */
const struct harvest_module *modules_find(const struct modules *modules, uintptr_t pc);

#endif
