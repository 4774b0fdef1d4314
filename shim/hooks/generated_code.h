/* Registration of unwind tables: see generated_code.c. */
#ifndef OTELPROF_HOOKS_GENERATED_CODE_H
#define OTELPROF_HOOKS_GENERATED_CODE_H

#include "capture/symbols/object_symbols.h"

#include <stddef.h>

enum { HOOKS_GENERATED_CODE_FUNCTIONS = 9 };

/* Lists them where nothing is profiled, and returns how many. Context: calm, at start. */
size_t hooks_generated_code_unneeded(struct symbol *unneeded);

#endif
