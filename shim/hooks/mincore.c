/* mincore: libunwind asks by it whether memory is there, once, when it unwinds for the first time.
 * That is on our helper, which gives it memory by other means; and sandboxes kill for the call. So
 * on our thread it does not exist, and libunwind goes on without. */
#include "bare_syscall.h"
#include "capture/capture.h"
#include "otelprof.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

/* Not <sys/mman.h>'s, whose pointer is never NULL. */
OTELPROF_EXPORT int own_mincore(void *start, size_t size,
                                unsigned char *resident) __asm__("mincore");

int own_mincore(void *start, size_t size, unsigned char *resident) {
    if (own_tls.is_ours) {
        errno = ENOSYS;
        return -1;
    }
    return (int)bare_syscall(SYS_mincore, (long)start, (long)size, (long)resident, 0, 0, 0);
}
