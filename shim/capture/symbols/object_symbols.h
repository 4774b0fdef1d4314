/* Reads the definitions of a loaded object from its own tables.
 *
 * dlsym() is not used: it takes the loader's lock; for each name that it does not find it allocates
 * a message with the program's malloc; and the program, or another preload, may define dlsym.
 * Reading the tables leaves no such message and runs no foreign code, except the resolver of an
 * indirect function (STT_GNU_IFUNC), which the loader would call, too. */
#ifndef OTELPROF_OBJECT_SYMBOLS_H
#define OTELPROF_OBJECT_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Holds a name to find, and the result. */
struct symbol {
    const char *name;
    void *address;                 /* NULL: not found */
    const struct link_map *object; /* the object that defines it */
    const ElfW(Sym) * entry;       /* its entry in the object's table */
    uint32_t hash;                 /* hash of the name; 0 until it is computed */
};

/* Return the first object of the loader's list (l_next: in the order of search, then of dlopen),
 * and this shared object. NULL without glibc, or if we are in a namespace of dlmopen(). Context:
 * calm. */
const struct link_map *object_symbols_first(void);
const struct link_map *object_symbols_own(void);

/* Makes a link map of an object that dl_iterate_phdr() visits, with the members that the following
 * functions read: the load address, and the dynamic section; l_ld is NULL if there is none. */
struct link_map object_symbols_map(const struct dl_phdr_info *info);

/* Finds in `object` the default versions (as dlsym() does) of those of `count` symbols that have no
 * address yet. Cost: about 200 instructions for the object and 30 for each name that it does not
 * define. Context: calm, while the object stays loaded. */
void object_symbols_find_all(const struct link_map *object, struct symbol *symbols, size_t count);

/* Finds in `object` the entries, but not the addresses, of those of `count` symbols that have no
 * entry yet: so no resolver is called. Context: as object_symbols_find_all(). */
void object_symbols_find_entries(const struct link_map *object, struct symbol *symbols,
                                 size_t count);

/* Returns the entry of `name` in the table of `object`, which defines it, or NULL. Context: as
 * object_symbols_find_all(). */
const ElfW(Sym) * object_symbols_entry(const struct link_map *object, const char *name);

/* Returns the entry of a thread-local variable, whose value is an offset in the object's TLS block;
 * NULL: `object` does not define it. Context: as object_symbols_find_all(). */
const ElfW(Sym) * object_symbols_thread_local(const struct link_map *object, const char *name);

/* Returns whether `object` defines `name`. No resolver is called. Context: as
 * object_symbols_find_all(). */
bool object_symbols_defines(const struct link_map *object, const char *name);

/* Returns the address of `name` in one of its versions ("GLIBC_2.2.5"), default or not; NULL:
 * `object` has none. Context: as object_symbols_find_all(). */
void *object_symbols_of_version(const struct link_map *object, const char *name,
                                const char *version);

/* Returns whether `object` defines a version of this name. Context: as
 * object_symbols_find_all(). */
bool object_symbols_defines_version(const struct link_map *object, const char *version);

/* Returns whether `is_wanted` accepts a name that `object` imports, weakly or not. Context: as
 * object_symbols_find_all(). */
bool object_symbols_refers(const struct link_map *object, bool (*is_wanted)(const char *name));

#endif
