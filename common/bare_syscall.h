/* Makes a system call without libc's syscall().
 *
 * Another preload may replace syscall() by a function that refuses unknown calls, or makes them by
 * libc's functions (torsocks does both) and so calls the profiler's hooks again.
 */
#ifndef OTELPROF_BARE_SYSCALL_H
#define OTELPROF_BARE_SYSCALL_H

#include "arch_syscall.h"

#include <errno.h>

/* Works as syscall() with all six arguments: returns -1 and sets errno on failure. Context: any.
 * Async-signal-safe: yes. */
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
