/* The hooks of prctl and syscall (hooks_sandbox.c) are of use from the first call on; which
 * syscall() stands behind ours the life cycle has them look up. */
#ifndef OTELPROF_HOOKS_SANDBOX_H
#define OTELPROF_HOOKS_SANDBOX_H

#include "capture/next.h"

/* Context: calm, at start. */
void hooks_sandbox_settle(void);

/* libc's syscall(), which takes as many arguments as the kernel does; until hooks_sandbox_settle()
 * one of ours. */
extern syscall_function *next_syscall;

#endif
