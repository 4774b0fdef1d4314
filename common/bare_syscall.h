/* A system call that nobody else sees.
 *
 * syscall() is a function as any other: a preload may have its own, which refuses the calls that it
 * does not know, or makes them by libc's functions (torsocks does both) and so comes back to ours.
 */
#ifndef OTELPROF_BARE_SYSCALL_H
#define OTELPROF_BARE_SYSCALL_H

#include "arch_syscall.h"

#include <errno.h>

/* As syscall(), with all six arguments: -1 and errno where it fails.
 * Context: any. Async-signal-safe: yes. */
static inline long bare_syscall(long number, long a, long b, long c, long d, long e, long f) {
    enum { MOST_ERRNO = 4095 }; /* linux/err.h, MAX_ERRNO */
    const long result = arch_system_call(number, a, b, c, d, e, f);
    if (result >= -MOST_ERRNO && result < 0) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

#endif
