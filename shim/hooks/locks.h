/* Hooks of calls that take a lock (lock_calls.def): libc's function takes a free lock directly; the
 * wait for a taken one is measured by wait/contention.h.
 *
 * A hook reads the lock and jumps: it has no frame and no state, and uses nothing of the thread's.
 * So it may be called from anywhere: from within an allocator, before a thread has profiler state,
 * by a signal handler, in a child of vfork. It tries no lock that the program did not ask to try,
 * except spin locks, whose waiters have no order. */
#ifndef OTELPROF_HOOKS_LOCKS_H
#define OTELPROF_HOOKS_LOCKS_H

/* Resolves the next functions, for bound_calls_start(). Context: calm, at start. */
void hooks_locks_add(void);

#endif
