/* operator new and delete: see operator_new.c. */
#ifndef OTELPROF_HOOKS_NEW_H
#define OTELPROF_HOOKS_NEW_H

#include "capture/symbols/object_symbols.h"

#include <stddef.h>

/* Resolves the next functions, which otherwise the first call of one does. Context: calm. */
void hooks_new_finish_init(void);

enum { HOOKS_NEW_FUNCTIONS = 22 };

/* Lists those in which nothing is counted, HOOKS_NEW_FUNCTIONS at most, and returns how many.
 * Context: calm, at start. */
size_t hooks_new_unneeded(struct symbol *unneeded);

#endif
