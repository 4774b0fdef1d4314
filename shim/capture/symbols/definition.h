/* Finds the definition of a function that the program uses.
 *
 * dlsym() does not show it: an executable that takes the address of malloc, and is not position
 * independent, lends the name an address in its own procedure linkage table, whichever object
 * defines it. So the symbol tables are read, in the loader's order of search. */
#ifndef OTELPROF_DEFINITION_H
#define OTELPROF_DEFINITION_H

#include <stdbool.h>

/* Returns whether an object that is searched before us, the executable or another preload, defines
 * `name`. Context: calm, while nothing is being loaded or unloaded: at start. */
bool definition_comes_before_ours(const char *name);

/* Returns whether the executable defines malloc and imports no symbol of threads: its malloc is
 * hardly made for a second one. An executable that defines a part of the allocator, and looks up
 * the next definition, is a wrapper. Context: likewise. */
bool definition_of_malloc_is_for_one_thread(void);

#endif
