/* How the functions begin that the program calls: on any stack (arch_entry.h), as libc's do.
 *
 * test/integration/test_any_stack.py calls every function of hooked.def on a stack that is 8 bytes
 * off.
 */
#ifndef OTELPROF_ENTRY_H
#define OTELPROF_ENTRY_H

#include "arch_entry.h"
#include "otelprof.h"

/* A hook. */
#define HOOK OTELPROF_EXPORT ARCH_ANY_STACK

/* A hook that aligns nothing, because it costs a few instructions in all: it calls only the next
 * function, which then has the stack of the program's caller, and functions that are RARE. */
#define FAST_HOOK OTELPROF_EXPORT

/* Keeps rare code out of the fast functions, which must not grow a stack frame for it. */
#define RARE __attribute__((noinline, cold)) ARCH_ANY_STACK

#endif
