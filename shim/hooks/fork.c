/* Hooks fork, because libc checks at its beginning, before any fork handler of ours, whether there
 * is more than one thread: libc_threads.h. */
#include "capture/symbols/next.h"
#include "entry.h"
#include "process/lifecycle.h"

#include <unistd.h>

HOOK pid_t fork(void) {
    lifecycle_before_fork();
    return next_calls()->fork();
}
