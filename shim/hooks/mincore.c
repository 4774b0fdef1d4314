/* Hooks mincore, which libunwind calls at its first unwind, on our helper, to check whether memory
 * is mapped. A sandbox may kill the process for this call, and the helper passes memory to
 * libunwind by other means. So on our thread mincore fails as unimplemented, and libunwind
 * continues without it. */
#include "bare_syscall.h"
#include "capture/capture.h"
#include "entry.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

/* Hooks mincore. Declared here because the declaration in <sys/mman.h> promises that the pointer is
 * never NULL. */
HOOK int hook_mincore(void *start, size_t size, unsigned char *resident) __asm__("mincore");

int hook_mincore(void *start, size_t size, unsigned char *resident) {
    if (profiler_tls.is_profiler_thread) {
        errno = ENOSYS;
        return -1;
    }
    return (int)bare_syscall(SYS_mincore, (long)start, (long)size, (long)resident, 0, 0, 0);
}
