/* Postpones a fatal signal that has come to a thread inside the dynamic loader.
 *
 * The last export may need the loader, whose lock the interrupted thread has: its handler would
 * wait for the helper, and the helper for it. So the thread continues, and the signal is sent
 * again, to a thread of the process that the kernel chooses. A program that does not leave the
 * loader ends after OTEL_PROFILER_SHUTDOWN_TIMEOUT.
 */
#ifndef OTELPROF_POSTPONED_SIGNAL_H
#define OTELPROF_POSTPONED_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* Returns true if the signal will be sent again: then the handler must return. Returns false if the
 * thread is not inside the loader, or was for too long, or if the signal could not be sent again.
 * Called in the handler of `number`. Async-signal-safe: yes. */
bool postponed_signal_comes_again(int number, const siginfo_t *info);

#endif
