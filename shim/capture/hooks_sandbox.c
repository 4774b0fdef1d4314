/* prctl: a thread that enters seccomp's strict mode may read, write and exit from then on, and is
 * killed by any other call. So nothing of ours happens on it any more. */
#include "capture.h"
#include "otelprof.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not <sys/prctl.h>'s, which takes any number of arguments; libc's takes four in any case. */
OTELPROF_EXPORT int own_prctl(int option, unsigned long second, unsigned long third,
                              unsigned long fourth, unsigned long fifth) __asm__("prctl");

int own_prctl(int option, unsigned long second, unsigned long third, unsigned long fourth,
              unsigned long fifth) {
    if (option == PR_SET_SECCOMP && second == SECCOMP_MODE_STRICT)
        capture_leave_thread();
    return (int)syscall(SYS_prctl, option, second, third, fourth, fifth);
}
