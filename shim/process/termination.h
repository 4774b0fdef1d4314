/* SIGTERM, SIGINT and SIGHUP where the program leaves them their default action: the process ends
 * by the same signal as without us, after the last export. SIGABRT, too, where the heap's peak is
 * profiled: what a program that has run out of memory held is known by its last export alone.
 *
 * The handler keeps the interrupted thread where it is, so that no call of the program's is ever
 * interrupted: it asks the helper for the last export, waits for it as long as exit would
 * (OTEL_PROFILER_SHUTDOWN_TIMEOUT), sets the default action and sends the signal again.
 * A thread that is inside the dynamic loader goes on, and the signal comes again
 * (postponed_signal.h).
 * The program sees nothing of it: hooks/signal.c answers that the action is the default one, any
 * action that the program sets replaces ours, and the default action, set anew, brings it back:
 * servers set it to end by the signal that their handler has got. Process 1 of a PID namespace is
 * left alone: the kernel gives it no signal that it does not handle.
 *
 * abort() is mostly called in the middle of something: with the allocator's lock held, or in a
 * handler on an alternate stack. The helper takes no lock of the program's allocator, and whatever
 * else it may wait for, it is waited for no longer than at exit. The kernel needs room for a second
 * frame on the alternate stack, or the process would end by SIGSEGV: where the program has a small
 * one SIGABRT is left alone from then on.
 */
#ifndef OTELPROF_TERMINATION_H
#define OTELPROF_TERMINATION_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Takes those signals that have their default action, SIGABRT among them if it `aborts` by us.
 * `end` brings the profiler to its end; it is called in the handler, on any thread, with the
 * signal's number. false: the thread is at that already, and sends itself the signal again.
 * Context: calm, at start. */
void termination_install(bool (*end)(int number), bool aborts);

/* A thread is about to get an alternate signal stack of so many bytes. Async-signal-safe: yes;
 * errno is preserved. */
void termination_note_signal_stack(size_t bytes);

/* Those that are still ours have their default action again. Async-signal-safe: yes. */
void termination_remove(void);

/* In a child: likewise, if it is the first process of a namespace, to which the kernel gives no
 * signal that it does not handle. Async-signal-safe: yes. */
void termination_spare_first_process(void);

/* What the kernel is to have where the program sets the default `action` for `number`: ours, if
 * that ends the process so and we are at it, or `action`. Async-signal-safe: yes. */
const struct sigaction *termination_in_place_of(const struct sigaction *action, int number);

/* Whether `action` has our handler, in whose place the program must see the default action. Its
 * flags are not looked at. Async-signal-safe: yes. */
bool termination_is_ours(const struct sigaction *action);

#endif
