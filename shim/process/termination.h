/* Handles SIGTERM, SIGINT and SIGHUP if the program leaves them their default action: the process
 * ends by the same signal as without the profiler, after the last export. Handles SIGABRT, too, if
 * the heap's peak is profiled: only the last export shows the memory of a program that has run out
 * of memory.
 *
 * The handler does not return while it waits, so that the signal interrupts no call of the
 * program's. The handler requests the last export from the helper, waits for it as long as exit
 * would (OTEL_PROFILER_SHUTDOWN_TIMEOUT), sets the default action and sends the signal again. A
 * thread that is inside the dynamic loader continues, and the signal is postponed. The program
 * cannot notice the handler, because hooks/signal.c reports the default action. Any action that the
 * program sets replaces the profiler's. When the program sets the default action again, the
 * profiler's handler is set again: servers do that to end by the signal that their handler has
 * received. Process 1 of a PID namespace is excluded, because the kernel sends that process no
 * signal that it does not handle.
 *
 * Most calls of abort() interrupt something: the allocator's lock is held, or a handler runs on an
 * alternate stack. The helper takes no lock of the program's allocator, and the handler waits no
 * longer for the helper than exit would. On the alternate stack the kernel needs space for a second
 * frame, or the process would end by SIGSEGV: so once the program has a small alternate stack,
 * SIGABRT is not handled any more.
 */
#ifndef OTELPROF_TERMINATION_H
#define OTELPROF_TERMINATION_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Sets the handler for each of these signals that has its default action, for SIGABRT only if
 * `aborts`. `end` ends the profiler; the handler calls it, on any thread, with the signal's number.
 * `end` returns false if the thread is already ending the profiler, and will send itself the signal
 * again. Context: calm, at start.
 */
void termination_install(bool (*end)(int number), bool aborts);

/* Reports that a thread is about to get an alternate signal stack of so many bytes.
 * Async-signal-safe: yes; errno is preserved. */
void termination_note_signal_stack(size_t bytes);

/* Restores the default action of the signals that still have the profiler's handler.
 * Async-signal-safe: yes. */
void termination_remove(void);

/* Restores the default actions in a child that is the first process of a namespace: the kernel
 * sends such a process no signal that it does not handle. Async-signal-safe: yes. */
void termination_spare_first_process(void);

/* Returns the action to set in the kernel when the program sets the default `action` for `number`:
 * the profiler's, if it is installed and the default action ends the process; else `action`.
 * Async-signal-safe: yes. */
const struct sigaction *termination_in_place_of(const struct sigaction *action, int number);

/* Returns true if `action` has the profiler's handler, in whose place the program must see the
 * default action. Ignores the action's flags. Async-signal-safe: yes. */
bool termination_is_profiler_action(const struct sigaction *action);

#endif
