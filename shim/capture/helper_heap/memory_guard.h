/* Aborts foreign code that finds no memory, or does not finish.
 *
 * Some of the helper's libraries end the process when malloc returns NULL: libdw calls exit(1),
 * glibc aborts if it cannot allocate a library's thread-local variable, others use the NULL
 * pointer. Some take unbounded time for some data: a demangler takes 1.4 seconds for a name of 158
 * bytes, and never finishes one of 362. So they run under a guard: an allocation that fails, or
 * exceeds the work's own ceiling, does not return, and the work ends when it has used up its CPU
 * time. A jump leaves the work; its allocations are freed (helper_heap.h), and its results are
 * never read. A timer on the helper's own CPU clock measures the time. The helper unblocks the
 * timer's signal (the sampler's) only during such work. If the interrupted instruction is in a
 * library that holds no lock (memory_guard_allow), or in a function of libc that only reads and
 * writes memory, the handler leaves the work; otherwise a later signal does.
 */
#ifndef OTELPROF_MEMORY_GUARD_H
#define OTELPROF_MEMORY_GUARD_H

#include "harvest.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Runs work(arg). Returns false if the work was left, because it had no memory or exceeded its
 * budget. Not nested. Context: the helper thread. */
bool memory_guard_run(void (*work)(void *arg), void *arg, const struct work_budget *budget);

/* Sets the timer for work under the guard: `watch` has `*signal` sent to the calling thread by its
 * own CPU clock, and returns true on success. Before this call no work is timed. Context: calm, at
 * start. */
void memory_guard_timed_by(bool (*watch)(void), const _Atomic int *signal);

/* Returns true if work under the guard has a limit of CPU time: there is a signal and a timer for
 * it. Starts the timer if it does not run. Context: the helper thread. */
bool memory_guard_is_timed(void);

/* Sets the code in which the work may be left at any instruction. `ranges` must stay valid.
 * Context: the helper thread. */
void memory_guard_allow(const struct code_range *ranges, size_t count);

/* Leaves the work after an allocation has failed; does not return if the calling thread is under a
 * guard. Context: any thread, in an allocator's hook. */
void memory_guard_leave(void);

/* Handles the timer's signal on the calling thread: if the work must be left, changes `context` (a
 * ucontext_t) so that the thread leaves it. Context: signal, a profiler thread. */
void memory_guard_on_signal(void *context);

/* Ends the guard in a forked child. Context: fork handler. */
void memory_guard_after_fork(void);

#endif
