/* The table of functions of a storage's class, in one loaded object: found by the class's name, and
 * changed.
 *
 * Names, classes and tables stand in each object that uses the API, because its headers are all
 * there is of it. Itanium C++ ABI: a class is {table of its kind, name, base} (2.9.5), a table of
 * functions has {0, class} in front (2.5.2). What is found is believed only if everything about it
 * is as expected. Context of all: the helper, while the object cannot be unloaded.
 */
#ifndef OTELPROF_STORAGE_TABLE_H
#define OTELPROF_STORAGE_TABLE_H

#include "cpp_context.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* The table's first function, for the class whose name is at `name`. 0, and why in `*outcome`:
 * there is none, more than one, or one of its functions is not in this object's code. */
uintptr_t storage_table_find(const struct dl_phdr_info *object, uintptr_t name,
                             enum cpp_outcome *outcome);

/* Puts `attach` and `detach` in their places, by writes that no thread can see a part of. The
 * memory is writable only meanwhile, and is as before when this returns. false: nothing was
 * changed. */
bool storage_table_replace(uintptr_t table, uintptr_t attach, uintptr_t detach);

#endif
