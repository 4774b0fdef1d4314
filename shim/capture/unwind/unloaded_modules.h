/* Remembers the objects that were unloaded last, so that samples in them can still be named. That
 * is common: an interpreter unloads all of its extensions before its end, and the last export comes
 * after that.
 *
 * A ring in memory of its own, which is taken when the first object goes: 0.7 MiB of addresses, of
 * which one object makes less than a page resident. Not locked: modules.h locks.
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
    } texts[UNLOADED_MODULES]; /* strings that the modules refer to */
};

struct unloaded_modules {
    struct unloaded_memory *memory; /* NULL: none has gone yet */
    uint64_t added;                 /* so far */
};

/* Returns the number of remembered modules, and each of them, in no order. */
static inline size_t unloaded_modules_count(const struct unloaded_modules *unloaded) {
    return unloaded->added < UNLOADED_MODULES ? (size_t)unloaded->added : UNLOADED_MODULES;
}
static inline struct harvest_module *unloaded_modules_at(const struct unloaded_modules *unloaded,
                                                         size_t i) {
    return &unloaded->memory->modules[i];
}

/* Remembers the unloaded object `gone`, with its intervals. If it had been loaded again at the same
 * address at once, both times become one entry. Returns true if an object is forgotten for it:
 * `*forgotten`, whose strings are no longer valid; without memory that is `gone` itself. Context:
 * calm. */
bool unloaded_modules_add(struct unloaded_modules *unloaded, const struct harvest_module *gone,
                          struct harvest_module *forgotten);

/* Returns an immutable copy of `loaded` followed by all remembered modules; NULL: no memory. It
 * refers to the strings of `loaded`. The caller frees it with profiler_memory_unmap(). Context:
 * calm. */
struct module_snapshot *unloaded_modules_join(const struct unloaded_modules *unloaded,
                                              const struct module_snapshot *loaded);

#endif
