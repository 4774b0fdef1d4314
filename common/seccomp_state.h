/* Detects a seccomp filter around the calling thread: a service manager's, a container's, or the
 * program's own.
 *
 * A process cannot query which calls a filter allows, and the filter may kill it for any other
 * call. So behind a filter only the system calls of shim/process/allowed_calls.def are made, which
 * the usual filters allow. A feature that needs another call checks for a filter first, and does
 * without the call.
 */
#ifndef OTELPROF_SECCOMP_STATE_H
#define OTELPROF_SECCOMP_STATE_H

#include "arch_syscall.h"

#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Returns true if there is a filter, or if the query is refused. Makes one system call. Context:
 * any, but never in seccomp's strict mode, which kills for the query. Async-signal-safe: yes; uses
 * no thread-local variable, not even errno. */
static inline bool seccomp_is_filtered(void) {
    return arch_system_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) != 0;
}

#endif
