/* Remembers the objects that were unloaded last, so that samples in them can still be named. Such
 * samples are frequent: an interpreter unloads all of its extensions before its end, and the last
 * export comes after that.
 *
 * The objects are in a ring, whose memory is mapped when the first object is unloaded: 0.7 MiB of
 * addresses, of which one object makes less than a page resident. The caller holds the lock of
 * modules.h.
 */
#ifndef OTELPROF_UNLOADED_MODULES_H
#define OTELPROF_UNLOADED_MODULES_H

#include "build_id_note.h"
#include "module_snapshot.h"

enum { UNLOADED_MODULES = 1024 };

struct unloaded_memory {
    struct harvest_module modules[UNLOADED_MODULES];
    struct {
        char path[MODULE_PATH_BYTES];
        uint8_t build_id[MAX_BUILD_ID_BYTES];
    } texts[UNLOADED_MODULES]; /* the strings that the modules refer to */
};

struct unloaded_modules {
    struct unloaded_memory *memory; /* NULL: no object was unloaded yet */
    uint64_t added;                 /* number of objects added so far */
};

/* Return the number of remembered modules, and each of them, in no particular order. */
static inline size_t unloaded_modules_count(const struct unloaded_modules *unloaded) {
    return unloaded->added < UNLOADED_MODULES ? (size_t)unloaded->added : UNLOADED_MODULES;
}
static inline struct harvest_module *unloaded_modules_at(const struct unloaded_modules *unloaded,
                                                         size_t i) {
    return &unloaded->memory->modules[i];
}

/* Remembers the unloaded object `gone`, with its intervals. If the same object was unloaded before
 * and loaded again at once at the same address, both times become one entry. Returns true if an
 * object had to be forgotten: `*forgotten`, whose strings are no longer valid. Without memory,
 * `gone` itself is forgotten. Context: calm. */
bool unloaded_modules_add(struct unloaded_modules *unloaded, const struct harvest_module *gone,
                          struct harvest_module *forgotten);

/* Returns an immutable copy of `loaded` followed by all remembered modules; NULL: no memory. The
 * copy refers to the strings of `loaded`. The caller frees it with profiler_memory_unmap().
 * Context: calm. */
struct module_snapshot *unloaded_modules_join(const struct unloaded_modules *unloaded,
                                              const struct module_snapshot *loaded);

#endif
