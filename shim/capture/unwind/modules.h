/* Finds the loaded object that an address lies in, and its unwind tables.
 *
 * Two lookups, for two questions. A signal handler, or a sampled malloc, needs the unwind tables at
 * a pc (modules_open). Nearly always the pc lies in an object that was loaded at the start and can
 * never be unloaded: an immutable array has it, and the loader is not called. Otherwise
 * _dl_find_object() finds the object (glibc 2.35 and later), the one lookup of the C library that
 * is documented as async-signal-safe: lock-free, allocating nothing, and aware of a library from
 * the moment it is mapped to the moment it is unmapped, however it was loaded (dlopen, dlmopen, a
 * library inside another namespace, libc itself for iconv and name services). So loading needs no
 * hook for this. On an older glibc the snapshot is searched. dlclose() waits until no thread reads
 * tables that it may unmap. The helper needs the names and build ids of the objects that were
 * loaded when a stack was recorded. Calm code takes snapshots of the loader's list: at the start,
 * before and after each dlclose, around each harvest, and before a dlopen if an object was unloaded
 * since the last snapshot. Between two harvests they update one snapshot in place, and read new
 * objects alone (module_snapshot.h). Unloaded objects are remembered (unloaded_modules.h). Time is
 * counted in intervals. A stack is recorded with the number of the present interval, and each
 * object has the intervals (struct harvest_module) in which its addresses were surely its own.
 * Whenever a snapshot finds that something came or went, one interval ends before it is taken and
 * another begins after it, and one begins before each dlclose: an unloaded object was there until
 * the interval of the first snapshot without it; a new object may have been there since the
 * snapshot before. Two objects at one address overlap at most in the time between two snapshots:
 * samples of that interval name neither of them, samples before and after it name one. The loader's
 * counters reveal objects that came and went between two snapshots. Their addresses are unknown, so
 * addresses of other objects that were loaded or unloaded between the two are not certain then.
 */
#ifndef OTELPROF_MODULES_H
#define OTELPROF_MODULES_H

#include "cfi.h"
#include "fixed_modules.h"
#include "harvest.h"
#include "module_snapshot.h"
#include "symbols/loaded_object.h"
#include "unloaded_modules.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Holds the modules' state. The fields that a forked child writes come last, and begin at half a
 * page, as in struct capture. */
struct modules {
    struct fixed_modules fixed;
    struct module_names names; /* read at the start, because a sandbox may forbid it later */
    _Alignas(2048) _Atomic(struct module_snapshot *) current;
    /* replaced snapshots that a thread may still read; under `lock` */
    struct module_snapshot *retired;
    struct module_snapshot *pinned; /* the snapshot that the helper works with; under `lock` */
    /* the pinned snapshot and the unloaded objects, or NULL; used by the helper */
    struct module_snapshot *joined;
    struct unloaded_modules unloaded; /* under `lock` */
    uint64_t epoch;                   /* number of harvests so far; under `lock` */
    /* number of the present interval, from 1 (harvest_module.first_interval); changed under
     * `lock` */
    _Atomic uint64_t interval;
    /* interval in which `current` was last known to be right; under `lock` */
    uint64_t seen_interval;
    bool updating; /* `current` is being updated in place; under `lock` */
    /* last interval in which an object came and went unseen; under `lock` */
    uint64_t unsure_interval;
    /* held by calm code only; initialized again in a forked child */
    pthread_mutex_t lock;
    loaded_object_find *find_object; /* NULL before glibc 2.35 */
    /* number of threads between modules_open() and modules_close() */
    _Atomic uint32_t readers;
    _Atomic uint32_t unloads; /* number of dlclose() calls under way */
};

enum modules_result {
    MODULES_NONE,     /* no loaded object spans the pc: generated code, or no code */
    MODULES_FOUND,    /* tables->header is 0 if the object has no tables that may be read */
    MODULES_CHANGING, /* a library is being unloaded: not now */
};

/* Takes the first snapshot. Returns false if there is no memory. Context: calm, single-threaded. */
bool modules_start(struct modules *modules);

/* Takes a new snapshot if the loader's counters have changed. Gives up if another thread is taking
 * a snapshot and does not finish in time. Returns true if an object was unloaded since the last
 * snapshot, or if that is not known, because the call gave up or found no memory. Context: calm;
 * takes the loader's lock. */
bool modules_refresh(struct modules *modules);

/* Takes a snapshot as modules_refresh() does, before an object may be unloaded, and begins a new
 * interval. */
bool modules_refresh_before_unload(struct modules *modules);

/* Takes a snapshot as modules_refresh() does, before an object is loaded, but only if an object was
 * unloaded since the last snapshot.
 */
void modules_refresh_before_load(struct modules *modules);

/* Begins a harvest: takes a new snapshot if needed and returns it; it stays valid until the next
 * call. `*unloaded`: as modules_refresh() returns it. Context: the helper. */
const struct module_snapshot *modules_pin(struct modules *modules, bool *unloaded);

/* Ends a harvest, after all samples were visited: notices objects that came and went until now. The
 * pinned snapshot is then the newest again. Context: the helper. */
void modules_close_interval(struct modules *modules);

/* Returns the objects that samples of the last ended harvest can lie in: the pinned snapshot and
 * the unloaded objects; before the first harvest has ended, the snapshot alone. NULL: no object is
 * known. Valid until the next modules_pin(). Context: the helper. */
const struct module_snapshot *modules_of_harvest(const struct modules *modules);

/* Returns the number of the present interval. Context: any. Async-signal-safe: yes. */
static inline uint64_t modules_interval(const struct modules *modules) {
    return atomic_load_explicit(&modules->interval, memory_order_relaxed);
}

/* Begin and end an unload, around dlclose(). The first function keeps new readers from objects that
 * may be unloaded, and waits for present readers, for at most 2,000 rounds of wait.h, which take
 * 0.1 s or more. Context: calm. */
void modules_begin_unload(struct modules *modules);
void modules_end_unload(struct modules *modules);

/* Take and release the lock around fork(), so that a child does not inherit the loader's lock from
 * a thread that takes a snapshot. Waits for at most 2,000 rounds of wait.h, which take 0.1 s or
 * more, then returns false. If modules_begin_fork() returns true, the parent must call
 * modules_end_fork(). Context: calm. */
bool modules_begin_fork(struct modules *modules);
void modules_end_fork(struct modules *modules);

/* Forgets, in a forked child, locks and readers of threads that do not exist in the child.
 * `own_unloads`: number of dlclose() calls that the calling thread is inside. */
void modules_after_fork(struct modules *modules, uint32_t own_unloads);

/* Finds the unwind tables that cover `pc`. After MODULES_FOUND, and only then, the caller must call
 * modules_close(); until then the tables stay mapped. `own_unloads` is the number of dlclose()
 * calls that this thread itself is inside: these cannot unmap memory while the thread reads. Cost:
 * 5 to 30 ns. Context: any. Async-signal-safe: yes. */
enum modules_result modules_open(struct modules *modules, uintptr_t pc, uint32_t own_unloads,
                                 struct cfi_tables *tables);
static inline void modules_close(struct modules *modules, const struct cfi_tables *tables) {
    if (!tables->fixed) /* pairs with has_no_reader(): the tables were read before */
        atomic_fetch_sub_explicit(&modules->readers, 1, memory_order_release);
}

/* Keeps all objects mapped, so that the caller can read memory of an object that may be unloaded:
 * dlclose() waits, as after modules_open(). Returns false, without a hold, if a dlclose() is under
 * way on any thread. Context: any. Async-signal-safe: yes. */
bool modules_hold(struct modules *modules);
static inline void modules_release(struct modules *modules) {
    /* pairs with has_no_reader() */
    atomic_fetch_sub_explicit(&modules->readers, 1, memory_order_release);
}

/* Returns true if a loaded object spans `pc`. Reads no memory of the object. Context: any.
 * Async-signal-safe: yes. */
bool modules_span(const struct modules *modules, uintptr_t pc);

/* Returns the module of the snapshot that holds `pc`, or NULL. Context: any. Async-signal-safe:
 * yes. */
const struct harvest_module *modules_find(const struct modules *modules, uintptr_t pc);

#endif
