/* Checks how much of a mapped file can really be read: a file that was cut short while it is mapped
 * raises SIGBUS behind its end, pages that a program has closed raise SIGSEGV. The kernel checks
 * it, in a call that changes nothing and that every sandbox allows: a tenth of a microsecond for
 * each page. */
#ifndef OTELPROF_READABLE_MEMORY_H
#define OTELPROF_READABLE_MEMORY_H

#include "arch_syscall.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Returns whether the kernel can copy the eight bytes around `address`. rt_sigprocmask copies the
 * new set before it checks the operation: EFAULT if it cannot, EINVAL for an operation that does
 * not exist. Every sandbox that a C program runs in allows the call; in one that does not, all
 * memory is unreadable. errno is preserved. Context: any. Async-signal-safe: yes. */
static inline bool word_is_readable(uintptr_t address) {
    enum { NO_SUCH_OPERATION = -1, KERNEL_SIGSET_BYTES = 8 };
    return arch_system_call(SYS_rt_sigprocmask, NO_SUCH_OPERATION, (long)(address & ~(uintptr_t)7),
                            0, KERNEL_SIGSET_BYTES, 0, 0) == -EINVAL;
}

/* Returns how many bytes from `address` on can be read, at most `size`; read them at once. errno is
 * preserved. Context: any. Async-signal-safe: yes. */
size_t readable_memory(uintptr_t address, size_t size);

#endif
