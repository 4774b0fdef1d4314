/* Hooks of calls that take a lock (lock_calls.def): a lock that is free is taken by libc's function
 * at once; one that is taken is waited for under the eyes of wait/contention.h.
 *
 * A hook looks at the lock and jumps: no frame, no state, nothing that is the thread's. So it may
 * be called from anywhere: from within an allocator, before a thread has any state of ours, by a
 * signal handler, in a child of vfork. No lock is tried that the program did not ask to try, except
 * spin locks, which know no order of those who wait.
 */
#ifndef OTELPROF_HOOKS_LOCKS_H
#define OTELPROF_HOOKS_LOCKS_H

/* Finds what is behind the hooks, for bound_calls_start(). Context: calm, at start. */
void hooks_locks_add(void);

#endif
