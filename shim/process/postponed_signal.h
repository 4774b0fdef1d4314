/* A signal that ends the process, and has come to a thread inside the dynamic loader.
 *
 * The last export may need the loader, whose lock the interrupted thread has: its handler would
 * wait for the helper, and the helper for it. So the thread goes on, and the signal comes again, to
 * whichever thread of the process the kernel then chooses. A program that does not leave the loader
 * ends when OTEL_PROFILER_SHUTDOWN_TIMEOUT is over.
 */
#ifndef OTELPROF_POSTPONED_SIGNAL_H
#define OTELPROF_POSTPONED_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* In the handler of `number`. true: it will come again, and the handler is to return. false: the
 * thread is not inside the loader, or was for too long, or the signal could not be had sent again.
 * Async-signal-safe: yes. */
bool postponed_signal_comes_again(int number, const siginfo_t *info);

#endif
