/* Finds the table of functions of a storage's class in one loaded object, by the class's name, and
 * changes it.
 *
 * Each object that uses the API has its own copy of names, classes and tables, because the API
 * consists of headers only. Itanium C++ ABI: a class is {table of its kind, name, base} (2.9.5), a
 * table of functions has {0, class} in front (2.5.2). A candidate is accepted only if all checks
 * succeed. Context of all: the helper, while the object cannot be unloaded. */
#ifndef OTELPROF_STORAGE_TABLE_H
#define OTELPROF_STORAGE_TABLE_H

#include "cpp_context.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the address of the table's first function, for the class whose name is at `name`. Returns
 * 0, and the reason in `*outcome`, if there is no such table, or more than one, or if one of its
 * functions is not in this object's code. */
uintptr_t storage_table_find(const struct dl_phdr_info *object, uintptr_t name,
                             enum cpp_outcome *outcome);

/* Stores the three addresses in the table, each by one atomic write. The memory is writable only
 * during the call; afterwards it has its old protection. Returns false if the table was not
 * changed. */
bool storage_table_replace(uintptr_t table, uintptr_t get_current, uintptr_t attach,
                           uintptr_t detach);

#endif
