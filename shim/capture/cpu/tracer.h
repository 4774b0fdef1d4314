/* Finds the tracer of the calling thread.
 *
 * A tracer stops the thread before a signal is delivered, and may deliver it at a later stop of its
 * own: ltrace does so when the signal came while it stepped over a breakpoint. The kernel then
 * delivers a new signal (Linux, kernel/signal.c, ptrace_signal() and ptrace_report_syscall()). At a
 * stop for another signal it is SI_USER with the tracer's process id; at a stop of a system call it
 * is SI_KERNEL. By then the timer that sent it may be deleted, and the program in exit(). */
#ifndef OTELPROF_TRACER_H
#define OTELPROF_TRACER_H

#include <sys/types.h>

/* Returns the tracer's process id, from /proc; 0: there is no tracer, or this process cannot see
 * it. A descriptor is open meanwhile. errno is preserved. Context: any. Async-signal-safe: yes. */
pid_t tracer_of_this_thread(void);

#endif
