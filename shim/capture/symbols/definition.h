/* Whose definition of a function the program uses.
 *
 * dlsym() does not tell: an executable that takes the address of malloc, and is not position
 * independent, lends the name an address in its own procedure linkage table, whoever defines it.
 * So the symbol tables are read, in the loader's order of search.
 */
#ifndef OTELPROF_DEFINITION_H
#define OTELPROF_DEFINITION_H

#include <stdbool.h>

/* Whether an object that is searched before us, the executable or another preload, defines `name`.
 * Context: calm, while nothing is being loaded or unloaded: at start. */
bool definition_comes_before_ours(const char *name);

/* Whether the executable defines malloc and asks nobody for anything that has to do with threads:
 * what it defines is hardly made for a second one. One that defines a part of the allocator, and
 * looks for what is behind it, is a wrapper. Context: likewise. */
bool definition_of_malloc_is_for_one_thread(void);

#endif
