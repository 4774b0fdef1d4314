/* Defines constants of the kernel on this architecture, and enters it for a system call.
 *
 * Sources: System V psABI for AMD64, A.2.1; linux/audit.h.
 */
#ifndef OTELPROF_ARCH_SYSCALL_H
#define OTELPROF_ARCH_SYSCALL_H

/* States the value of `arch` in struct seccomp_data, which the kernel passes to a seccomp filter;
 * defined in <linux/audit.h>. */
#define ARCH_OF_SYSTEM_CALLS AUDIT_ARCH_X86_64

/* States the first kernel version that has CONFIG_POSIX_CPU_TIMERS_TASK_WORK. */
enum { ARCH_TASK_WORK_MAJOR = 5, ARCH_TASK_WORK_MINOR = 9 };

/* Makes the system call with all six arguments. Returns the kernel's result: -errno on failure.
 * Context: any. Async-signal-safe: yes. */
static inline long arch_system_call(long number, long a, long b, long c, long d, long e, long f) {
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

#endif
