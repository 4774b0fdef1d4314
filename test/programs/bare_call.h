/* Makes system calls by an instruction, which no hook sees. They return the kernel's result, which
 * is -errno on failure. */
#ifndef TEST_BARE_CALL_H
#define TEST_BARE_CALL_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__aarch64__)
static inline long bare_call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
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
#endif

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
