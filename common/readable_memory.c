#include "readable_memory.h"

#include "arch_memory.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NO_SUCH_OPERATION = -1, KERNEL_SIGSET_BYTES = 8 };

/* rt_sigprocmask copies the new set before it looks at the operation: EFAULT if it cannot, EINVAL
 * for an operation that does not exist. */
static bool is_readable(uintptr_t page) {
    return syscall(SYS_rt_sigprocmask, (long)NO_SUCH_OPERATION, page, 0L,
                   (long)KERNEL_SIGSET_BYTES) != 0 &&
           errno == EINVAL;
}

size_t readable_memory(uintptr_t address, size_t size) {
    const uintptr_t page_bytes = ARCH_SMALLEST_PAGE_BYTES;
    const int saved = errno;
    uintptr_t page = address & -page_bytes;
    while (page < address + size && is_readable(page))
        page += page_bytes;
    errno = saved;
    if (page <= address)
        return 0;
    return page - address < size ? page - address : size;
}
