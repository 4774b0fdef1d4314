/* fork: libc looks at its beginning whether there is more than one thread, before any handler of
 * ours: libc_threads.h. */
#include "capture/symbols/next.h"
#include "otelprof.h"
#include "process/lifecycle.h"

#include <unistd.h>

OTELPROF_EXPORT pid_t fork(void) {
    lifecycle_before_fork();
    return next_calls()->fork();
}
