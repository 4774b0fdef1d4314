/* Detects a seccomp filter around the calling thread: a service manager's, a container's, or the
 * program's own.
 *
 * A process cannot query which calls a filter allows, and the filter may kill it for others. So
 * behind a filter only the system calls of shim/process/allowed_calls.def are made, which the usual
 * filters allow: a feature that needs another one checks here first, and does without.
 */
#ifndef OTELPROF_SECCOMP_STATE_H
#define OTELPROF_SECCOMP_STATE_H

#include "arch_syscall.h"

#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Returns true also if the query is refused. One system call. Context: any, but never in seccomp's
 * strict mode, where the query kills. Async-signal-safe: yes; uses nothing of the thread's, errno
 * neither. */
static inline bool seccomp_is_filtered(void) {
    return arch_system_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) != 0;
}

#endif
