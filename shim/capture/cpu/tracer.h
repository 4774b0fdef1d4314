/* The tracer of the calling thread.
 *
 * A tracer stops the thread before a signal is delivered, and may deliver it at a later stop of its
 * own: ltrace does so when the signal came while it stepped over a breakpoint. The kernel then
 * takes the signal for a new one (Linux, kernel/signal.c, ptrace_signal() and
 * ptrace_report_syscall()): at a stop for another signal for the tracer's, SI_USER with its process
 * id; at a stop of a system call for its own, SI_KERNEL. By then the timer that sent it may be
 * gone, and the program in exit(). */
#ifndef OTELPROF_TRACER_H
#define OTELPROF_TRACER_H

#include <sys/types.h>

/* Returns its process id, as /proc has it; 0: there is none, or none that this process can see. A
 * descriptor is open meanwhile. errno is preserved. Context: any. Async-signal-safe: yes. */
pid_t tracer_of_this_thread(void);

#endif
