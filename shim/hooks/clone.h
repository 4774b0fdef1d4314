/* Children by a bare clone(2), where syscall() makes them: see hooks_clone.c. Context: any. */
#ifndef OTELPROF_HOOKS_CLONE_H
#define OTELPROF_HOOKS_CLONE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the call, with these first arguments, makes a copy of the process that goes on on the
 * same stack. */
bool hooks_clone_copies(long number, uintptr_t first, uintptr_t second);

/* Makes such a call. */
long hooks_clone_by_number(long number, long a, long b, long c, long d, long e, long f);

#endif
