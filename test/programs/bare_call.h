/* Makes system calls by an instruction, which no hook sees. They return the kernel's result, which
 * is -errno on failure. */
#ifndef TEST_BARE_CALL_H
#define TEST_BARE_CALL_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline long bare_call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Makes the call and returns as syscall() does: on failure it sets errno and returns -1. */
static inline long bare_syscall_of(long number, const long a[6]) {
    const long result = bare_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}

/* Sets the mask; `how` is that of sigprocmask(). */
static inline long bare_sigprocmask(int how, uint64_t mask) {
    return bare_call(SYS_rt_sigprocmask, how, (long)&mask, 0, sizeof mask, 0, 0);
}

#endif
