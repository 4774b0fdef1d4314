/* Finds the next definition of a function behind ours, in the loader's order of search. */
#ifndef OTELPROF_NEXT_SYMBOL_H
#define OTELPROF_NEXT_SYMBOL_H

#include "object_symbols.h"

#include <stdatomic.h>

/* Finds those of `count` symbols that have no address yet. The result is that of dlsym(RTLD_NEXT,
 * name), but read from the tables of the objects loaded behind us (object_symbols.h), so that no
 * memory is allocated and no foreign code runs. If we were loaded by dlopen, libc is not behind us;
 * then the definition is taken that the program itself would call. Objects that were loaded for one
 * other object only (the libpthread of a plug-in, whose calls reach us first) are searched last.
 * dlsym() is used only where there is no list of objects (musl). Context: any, except while an
 * object with one of these names is being unloaded. */
void next_symbols(struct symbol *symbols, size_t count);

/* Finds one name; NULL if no object defines it. Context: as next_symbols(). */
void *next_symbol(const char *name);

/* Returns next_symbol(name), which the first call finds and stores in `*kept`. Several threads may
 * search at once and store the same address. errno is preserved. Context: as next_symbols(). */
void *next_symbol_search_once(_Atomic(void *) *kept, const char *name);
static inline void *next_symbol_once(_Atomic(void *) *kept, const char *name) {
    void *const found = atomic_load_explicit(kept, memory_order_relaxed);
    return found ? found : next_symbol_search_once(kept, name);
}

/* Finds the first definition in the whole process except ours: the result of dlsym(RTLD_DEFAULT,
 * name) for a name that is not ours. Context: as next_symbols(). */
void *first_symbol(const char *name);

/* Returns whether libc is behind us: we were preloaded, or linked to the executable. Objects loaded
 * by dlopen are searched after libc. Context: as next_symbols(). */
bool next_symbols_follow_profiler(void);

#endif
