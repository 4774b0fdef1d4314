/* The hooks of prctl and syscall: see hooks_sandbox.c. */
#ifndef OTELPROF_HOOKS_SANDBOX_H
#define OTELPROF_HOOKS_SANDBOX_H

#include "capture/symbols/next.h"

/* Looks which syscall() stands behind ours, which the first call does otherwise. Context: any.
 * Async-signal-safe: yes. */
void hooks_sandbox_settle(void);

/* It: libc's takes as many arguments as the kernel does. */
extern syscall_function *next_syscall;

#endif
