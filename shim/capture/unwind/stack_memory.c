#include "stack_memory.h"

#include "bare_syscall.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

enum { NO_SUCH_OPERATION = -1, KERNEL_SIGSET_BYTES = 8 };

/* rt_sigprocmask copies the new set before it looks at the operation: EFAULT if it cannot, EINVAL
 * for an operation that does not exist. Every sandbox that a C program runs in allows the call; to
 * one that does not, all memory is unreadable. */
bool memory_is_readable(uintptr_t address) {
    const int saved = errno;
    const long result = bare_syscall(SYS_rt_sigprocmask, NO_SUCH_OPERATION,
                                     (long)(address & ~(uintptr_t)7), 0, KERNEL_SIGSET_BYTES, 0, 0);
    const bool readable = result != 0 && errno == EINVAL;
    errno = saved;
    return readable;
}
