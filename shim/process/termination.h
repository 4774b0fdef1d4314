/* Handles SIGTERM, SIGINT and SIGHUP where the program leaves them their default action: the
 * process ends by the same signal as without the profiler, after the last export. Handles SIGABRT,
 * too, where the heap's peak is profiled: only the last export shows the memory of a program that
 * has run out of it.
 *
 * The handler keeps the interrupted thread where it is, so that no call of the program's is ever
 * interrupted. It requests the last export from the helper, waits for it as long as exit would
 * (OTEL_PROFILER_SHUTDOWN_TIMEOUT), sets the default action and sends the signal again. A thread
 * that is inside the dynamic loader continues, and the signal is postponed.
 * The program sees nothing of it: hooks/signal.c reports the default action. Any action that the
 * program sets replaces the profiler's, and the default action, set again, brings it back: servers
 * set it to end by the signal that their handler has got. Process 1 of a PID namespace is excluded:
 * the kernel gives it no signal that it does not handle.
 *
 * Most calls of abort() interrupt something: the allocator's lock is held, or a handler runs on an
 * alternate stack. The helper takes no lock of the program's allocator, and for its other waits the
 * handler waits no longer than exit. The kernel needs space for a second frame on the alternate
 * stack, or the process would end by SIGSEGV: once the program has a small one, SIGABRT is not
 * handled any more.
 */
#ifndef OTELPROF_TERMINATION_H
#define OTELPROF_TERMINATION_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Takes those signals that have their default action, SIGABRT only if `aborts`. `end` ends the
 * profiler; it is called in the handler, on any thread, with the signal's number. It returns false
 * if the thread is ending it already, and sends itself the signal again. Context: calm, at start.
 */
void termination_install(bool (*end)(int number), bool aborts);

/* Reports that a thread is about to get an alternate signal stack of so many bytes.
 * Async-signal-safe: yes; errno is preserved. */
void termination_note_signal_stack(size_t bytes);

/* Restores the default action of those that still have the profiler's. Async-signal-safe: yes. */
void termination_remove(void);

/* Does so in a child that is the first process of a namespace, to which the kernel gives no signal
 * that it does not handle. Async-signal-safe: yes. */
void termination_spare_first_process(void);

/* Returns the action to set in the kernel when the program sets the default `action` for `number`:
 * the profiler's, if it is installed and that ends the process so, or `action`. Async-signal-safe:
 * yes. */
const struct sigaction *termination_in_place_of(const struct sigaction *action, int number);

/* Returns true if `action` has the profiler's handler, in whose place the program must see the
 * default action. Ignores its flags. Async-signal-safe: yes. */
bool termination_is_profiler_action(const struct sigaction *action);

#endif
