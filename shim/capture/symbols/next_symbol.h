/* The definition of a function behind ours, in the loader's order of search. */
#ifndef OTELPROF_NEXT_SYMBOL_H
#define OTELPROF_NEXT_SYMBOL_H

#include "object_symbols.h"

/* Finds those of `count` symbols that have no address: what dlsym(RTLD_NEXT, name) answers, read
 * from the tables of what is loaded behind us (object_symbols.h), so that nothing is allocated and
 * no code of others runs. If we were loaded by dlopen, libc is not behind us; then what the
 * program itself would call. What is loaded for somebody else alone is found, too, after all the
 * rest: the libpthread of a plug-in, whose calls come to us first. dlsym() is asked only where
 * there is no list of objects (musl). Context: any, but for the time that an object with one of
 * these names is being unloaded. */
void next_symbols(struct symbol *symbols, size_t count);

/* The same of one name; NULL if nobody has it. Context: likewise. */
void *next_symbol(const char *name);

/* The first definition in the whole process but for ours: what dlsym(RTLD_DEFAULT, name) answers
 * for a name that is not ours. Context: likewise. */
void *first_symbol(const char *name);

/* Whether libc is behind us: we were preloaded, or linked to the executable. What dlopen brought
 * stands behind libc. Context: likewise. */
bool next_symbols_are_behind_us(void);

#endif
