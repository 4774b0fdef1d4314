/* The hooks of prctl and syscall (hooks_sandbox.c) are of use from the first call on; which
 * syscall() stands behind ours the life cycle has them look up. */
#ifndef OTELPROF_HOOKS_SANDBOX_H
#define OTELPROF_HOOKS_SANDBOX_H

/* Context: calm, at start. */
void hooks_sandbox_settle(void);

#endif
