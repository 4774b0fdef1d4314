/* Defines constants of the kernel on this architecture, and enters it for a system call.
 *
 * Sources: Linux arch/arm64/kernel/entry.S, include/uapi/asm-generic/unistd.h; linux/audit.h.
 */
#ifndef OTELPROF_ARCH_SYSCALL_H
#define OTELPROF_ARCH_SYSCALL_H

#include <sys/syscall.h>

/* Defines the numbers of calls that this kernel lacks as those of the calls that libc makes in
 * their place. */
#define SYS_epoll_wait SYS_epoll_pwait
#define SYS_fork       1079 /* the number that asm-generic/unistd.h reserves; no kernel has it */
#define SYS_poll       SYS_ppoll
#define SYS_readlink   SYS_readlinkat

/* States the value of `arch` in struct seccomp_data, which the kernel passes to a seccomp filter;
 * defined in <linux/audit.h>. */
#define ARCH_OF_SYSTEM_CALLS AUDIT_ARCH_AARCH64

/* States a kernel version that has CONFIG_POSIX_CPU_TIMERS_TASK_WORK; an older one may have it. */
enum { ARCH_TASK_WORK_MAJOR = 6, ARCH_TASK_WORK_MINOR = 1 };

/* Makes the system call with all six arguments. Returns the kernel's result: -errno on failure.
 * Context: any. Async-signal-safe: yes. */
static inline long arch_system_call(long number, long a, long b, long c, long d, long e, long f) {
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

#endif
