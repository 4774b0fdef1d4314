#include "helper_table.h"

#include "bare_syscall.h"
#include "capture/capture.h"
#include "capture/kernel/futex.h"
#include "helper.h"

#include <stdatomic.h>
#include <sys/syscall.h>

static const char reason[] = "the helper's table of descriptors is not its own any more, as after "
                             "a restore of the process (CRIU)";

/* Ends the thread by a bare system call, because every function that ends a thread properly may
 * close a descriptor. */
_Noreturn static void end_untouched(void) {
    (void)helper_state_move(&helper.state, HELPER_DONE, IN_HELPER);
    futex_wake(&helper.state);
    for (;;)
        (void)bare_syscall(SYS_exit, 0, 0, 0, 0, 0, 0);
}

bool helper_table_holds(void) {
    if (descriptors_are_own(&helper.table))
        return true;
    const bool separate = descriptors_separate(&helper.table);
    if (!separate)
        atomic_store(&helper.log->separate_thread, 0);
    log_warn(helper.log, "%s; nothing is profiled any more", reason);
    helper_end(reason);
    if (!separate)
        end_untouched();
    return false;
}
