/* Hooks of calls that may block (blocking_calls.def). Each publishes where its thread waits, and
 * forwards the call.
 *
 * A hook has a frame of its own, which the thread's stack shows, and no exception table: it holds
 * nothing, so cancellation and longjmp may skip it. The reader of slots copes with what they leave
 * in the slot (wait_slot.h). No hook reads a clock, makes a system call, or changes errno. */
#ifndef OTELPROF_HOOKS_BLOCKING_H
#define OTELPROF_HOOKS_BLOCKING_H

/* Binds the calls, if a profiled type needs waits. Context: calm, at start. */
void hooks_blocking_start(unsigned types);

#endif
