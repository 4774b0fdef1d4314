/* Finds out that the whole process was stopped: by SIGSTOP, in a frozen control group, or with its
 * virtual machine. No thread can see that while it lasts, and no signal reports it.
 *
 * The helper is stopped, too. So it returns from a sleep later than it should, by more than the
 * time for which it was then ready and waited for a processor, which the kernel counts. A stop is
 * known from the moment at which the sleep should have ended: at most a poll's period is missing,
 * which stays in what the threads did then. Time in which the machine is suspended is on no clock
 * that the profiler uses.
 *
 * Context: the helper.
 */
#ifndef OTELPROF_PROCESS_STOP_H
#define OTELPROF_PROCESS_STOP_H

#include "kernel_thread.h"

#include <stdint.h>

struct process_stop {
    struct thread_files files; /* the helper's own */
    uint64_t sleep_ns;         /* CLOCK_MONOTONIC: when the present sleep began; 0: not known */
    uint64_t delay_ns;         /* run-queue delay that the helper had by then */
};

/* Called right before a sleep. */
void process_stop_before_sleep(struct process_stop *stop, struct kernel_view *view);

/* Called right after a sleep that should have ended at `until` (CLOCK_MONOTONIC). Returns for how
 * long the process was stopped; 0: it was not. */
uint64_t process_stop_after_sleep(struct process_stop *stop, struct kernel_view *view,
                                  uint64_t until);

#endif
