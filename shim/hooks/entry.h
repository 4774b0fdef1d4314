/* Marks the functions that the program calls: they work on any stack (arch_entry.h), as libc's do.
 *
 * test/integration/test_any_stack.py calls every function of hooked.def on a stack that is 8 bytes
 * off.
 */
#ifndef OTELPROF_ENTRY_H
#define OTELPROF_ENTRY_H

#include "arch_entry.h"
#include "otelprof.h"

/* Marks a hook. */
#define HOOK OTELPROF_EXPORT ARCH_ANY_STACK

/* Marks a hook that aligns no stack, because that would cost too much beside its few instructions.
 * It calls only RARE functions and the next function, whose stack is then aligned as the program's
 * caller has aligned it. */
#define FAST_HOOK OTELPROF_EXPORT

/* Keeps rare code out of the fast functions, which must not grow a stack frame for it. */
#define RARE __attribute__((noinline, cold)) ARCH_ANY_STACK

#endif
