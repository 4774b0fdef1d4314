/* Hooks of calls that may block (blocking_calls.def): each publishes where its thread waits, and
 * sends the call on.
 *
 * A hook has a frame of its own, which the thread's stack shows, and no table for exceptions: it
 * holds nothing, so cancellation and longjmp may pass it by. What they leave in the slot the reader
 * of slots is prepared for (parked.h). No hook reads a clock, makes a system call, or changes
 * errno.
 */
#ifndef OTELPROF_HOOKS_BLOCKING_H
#define OTELPROF_HOOKS_BLOCKING_H

/* Binds the calls, if a type that is profiled wants to know of waits. Context: calm, at start. */
void hooks_blocking_start(unsigned types);

#endif
