/* Finds the definition of a function that the program uses.
 *
 * dlsym() may return something else: if an executable is not position independent and takes the
 * address of malloc, the address of that name is in the executable's procedure linkage table,
 * whichever object defines malloc. So the symbol tables are read, in the loader's order of
 * search. */
#ifndef OTELPROF_DEFINITION_H
#define OTELPROF_DEFINITION_H

#include <stdbool.h>

/* Returns whether an object that is searched before us, the executable or another preload, defines
 * `name`. Context: calm, while no object is being loaded or unloaded: at start. */
bool definition_comes_before_ours(const char *name);

/* Returns whether the executable defines malloc and imports no symbol of threads: such a malloc is
 * hardly safe with a second thread. Returns false for a wrapper: an executable that defines a part
 * of the allocator, and looks up the next definition. Context: as
 * definition_comes_before_ours(). */
bool definition_of_malloc_is_for_one_thread(void);

#endif
