/* A system call that nobody else sees.
 *
 * syscall() is a function as any other: a preload may have its own, which refuses the calls that it
 * does not know, or makes them by libc's functions (torsocks does both) and so comes back to ours.
 */
#ifndef OTELPROF_BARE_SYSCALL_H
#define OTELPROF_BARE_SYSCALL_H

#include <errno.h>

/* As syscall(), with all six arguments: -1 and errno where it fails.
 * Context: any. Async-signal-safe: yes. */
static inline long bare_syscall(long number, long a, long b, long c, long d, long e, long f) {
    enum { MOST_ERRNO = 4095 }; /* linux/err.h, MAX_ERRNO */
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    if (result >= -MOST_ERRNO && result < 0) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

#endif
