/* Leaving foreign code in the middle: when it finds no memory, or does not come to an end.
 *
 * Some of what the helper uses ends the process when malloc returns NULL: libdw calls exit(1),
 * glibc aborts where a library's thread-local variable needs room, others use the pointer. Some of
 * it takes as long as the data that it works on demands: a demangler of 158 bytes 1.4 seconds, of
 * 362 for ever. So it works under a guard: an allocation that fails, also for being beyond the
 * work's own ceiling, does not return, and neither does the work when it has used more CPU time
 * than it may. It is left by a jump. What it had allocated is given back (helper_heap.h), and
 * nothing that it had made is looked at again.
 * The time is told by a timer on the helper's own CPU clock, whose signal (the sampler's) the
 * helper takes in its work only. The work is left where the interrupted instruction is in a library
 * that holds no lock (memory_guard_allow) or in a function of libc that only reads and writes
 * memory; elsewhere, at a later signal.
 */
#ifndef OTELPROF_MEMORY_GUARD_H
#define OTELPROF_MEMORY_GUARD_H

#include "harvest.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Runs work(arg). false: it was left, for want of memory or beyond its budget. Not nested.
 * Context: the helper thread. */
bool memory_guard_run(void (*work)(void *arg), void *arg, const struct work_budget *budget);

/* By what the CPU time of such work is told: `watch` sees to it that `*signal` comes to the calling
 * thread by its own CPU clock, and answers whether it does. Until then no work is timed.
 * Context: calm, at start. */
void memory_guard_timed_by(bool (*watch)(void), const _Atomic int *signal);

/* Whether the CPU time of such work is held to a budget: there is a signal and a timer for it.
 * Context: the helper thread. */
bool memory_guard_is_timed(void);

/* The code in which work may be left at any instruction. `ranges` must stay.
 * Context: the helper thread. */
void memory_guard_allow(const struct code_range *ranges, size_t count);

/* An allocation has failed: does not return if the calling thread is under a guard.
 * Context: any thread, in an allocator's hook. */
void memory_guard_leave(void);

/* The timer's signal has come to the calling thread; changes where `context` (a ucontext_t) goes on
 * if the work is to be left. Context: signal, a thread that is ours. */
void memory_guard_on_signal(void *context);

/* In a forked child: nobody works. Context: fork handler. */
void memory_guard_after_fork(void);

#endif
