/* mmap and its like: see mmap.c. */
#ifndef OTELPROF_HOOKS_MMAP_H
#define OTELPROF_HOOKS_MMAP_H

#include "capture/symbols/object_symbols.h"

#include <stddef.h>

enum { HOOKS_MMAP_FUNCTIONS = 4 };

/* Lists them where mappings are not profiled, and returns how many. Context: calm, at start. */
size_t hooks_mmap_unneeded(struct symbol *unneeded);

#endif
