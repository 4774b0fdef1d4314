/* Whether somebody has put a seccomp filter around the calling thread: a service manager, a
 * container, the program itself.
 *
 * What a filter allows cannot be asked, and one that does not allow a call may kill for it. So
 * behind a filter no system call is made but those of shim/process/allowed_calls.def, which the
 * usual filters allow: a feature that needs another one asks here first, and does without.
 */
#ifndef OTELPROF_SECCOMP_STATE_H
#define OTELPROF_SECCOMP_STATE_H

#include <stdbool.h>
#include <sys/prctl.h>

/* true also where the question is refused. One system call. Context: any, but never in seccomp's
 * strict mode, where the question kills. Async-signal-safe: yes. */
static inline bool seccomp_is_filtered(void) {
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

#endif
