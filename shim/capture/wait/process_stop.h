/* Detects that the whole process was stopped: by SIGSTOP, in a frozen control group, or with its
 * virtual machine. No thread runs during a stop, and no signal reports it.
 *
 * The helper is stopped, too, and so returns late from its sleep. The kernel counts how long the
 * helper was then ready and waited for a processor; the rest of the lateness was a stop. A stop
 * counts from the moment at which the sleep should have ended. So at most a poll's period of it is
 * not recorded as a stop, but as the wait or the delay that each thread was in then. Time in which
 * the machine is suspended is on no clock that the profiler uses.
 *
 * Context: the helper.
 */
#ifndef OTELPROF_PROCESS_STOP_H
#define OTELPROF_PROCESS_STOP_H

#include "kernel_thread.h"

#include <stdint.h>

struct process_stop {
    struct thread_files files; /* files of the helper itself */
    uint64_t sleep_ns;         /* CLOCK_MONOTONIC: when the present sleep began; 0: not known */
    uint64_t delay_ns;         /* run-queue delay of the helper at that time */
};

/* Call this right before a sleep of the helper. */
void process_stop_before_sleep(struct process_stop *stop, struct kernel_view *view);

/* Call this right after a sleep that should have ended at `until` (CLOCK_MONOTONIC). Returns the
 * time for which the process was stopped, in nanoseconds; 0: it was not stopped for 100 ms or more,
 * or that is not known. */
uint64_t process_stop_after_sleep(struct process_stop *stop, struct kernel_view *view,
                                  uint64_t until);

#endif
