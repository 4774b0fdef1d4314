/* Finds the tracer of the calling thread.
 *
 * A tracer stops the thread before a signal is delivered, and may deliver it at a later stop of its
 * own: ltrace does so when the signal came while it stepped over a breakpoint. The kernel then
 * delivers it as a new signal (Linux, kernel/signal.c, ptrace_signal() and
 * ptrace_report_syscall()): at a stop for another signal as one from the tracer, SI_USER with its
 * process id; at a stop of a system call as one from the kernel, SI_KERNEL. By then the timer that
 * sent it may be gone, and the program in exit(). */
#ifndef OTELPROF_TRACER_H
#define OTELPROF_TRACER_H

#include <sys/types.h>

/* Returns the tracer's process id, as /proc has it; 0: there is no tracer, or none that this
 * process can see. A descriptor is open meanwhile. errno is preserved. Context: any.
 * Async-signal-safe: yes. */
pid_t tracer_of_this_thread(void);

#endif
