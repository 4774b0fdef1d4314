/* Checks how much of mapped memory can be read: a mapped file that was cut short raises SIGBUS
 * behind its end, and pages without access raise SIGSEGV. The kernel checks each page in a tenth of
 * a microsecond, by a call that changes nothing and that every sandbox allows. */
#ifndef OTELPROF_READABLE_MEMORY_H
#define OTELPROF_READABLE_MEMORY_H

#include "arch_syscall.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Returns whether the kernel can copy the eight bytes around `address`. rt_sigprocmask copies the
 * new set before it checks the operation: EFAULT means that the set cannot be copied, EINVAL that
 * only the operation is invalid. Every sandbox that a C program runs in allows the call; if a
 * sandbox does not, all memory counts as unreadable. errno is preserved. Context: any.
 * Async-signal-safe: yes. */
static inline bool word_is_readable(uintptr_t address) {
    enum { NO_SUCH_OPERATION = -1, KERNEL_SIGSET_BYTES = 8 };
    return arch_system_call(SYS_rt_sigprocmask, NO_SUCH_OPERATION, (long)(address & ~(uintptr_t)7),
                            0, KERNEL_SIGSET_BYTES, 0, 0) == -EINVAL;
}

/* Returns how many bytes from `address` on can be read, at most `size`. The result is valid only
 * for an immediate read. errno is preserved. Context: any. Async-signal-safe: yes. */
size_t readable_memory(uintptr_t address, size_t size);

#endif
