/* Runs the profiler's life in this process: at fork, in a sandbox, and at the end, which is one
 * last harvest and export, bounded in time, after which the helper sleeps. */
#ifndef OTELPROF_LIFECYCLE_H
#define OTELPROF_LIFECYCLE_H

#include "config.h"
#include "log.h"

#include <stdbool.h>

/* Registers for fork and for the ends of the process; capture is armed. Keeps both pointers.
 * `sandbox`: PR_GET_SECCOMP at the start. Context: calm, single-threaded, once. */
void lifecycle_begin(const struct config *config, const struct log *log, int sandbox);

/* Called instead if this process is not profiled. Its hooks forward. Context: calm, at start. */
void lifecycle_decline(void);

/* Returns true if this process has lived long enough to send anything. Async-signal-safe: yes. */
bool lifecycle_may_send(void);

/* Ends the profiler. Idempotent; does nothing in a process other than the one that started (a
 * vfork()ed child shares its memory). If another thread's end has begun, waits for that
 * (end_turn.h). A signal that came to this thread during the last export is sent again afterwards.
 * None of these is a cancellation point. Context: calm, when the process is about to run its exit
 * handlers. */
void lifecycle_end(void);

/* Does the same, and drops such a signal, because the process ends next. */
void lifecycle_end_without_handlers(void);

/* Does the same where the thread may be in the middle of any call: `_exit` in a signal handler, or
 * a fatal signal. Starts no helper. Async-signal-safe: yes. */
void lifecycle_end_at_once(void);

/* Returns true if the profiler does nothing more on the calling thread, or in this process.
 * Async-signal-safe: yes, without a system call. */
bool lifecycle_is_out(void);

/* Stops the profiler on the calling thread and its future threads and children, which may soon be
 * killed by the signal `killed_by` for a system call of the profiler's. Context: calm. */
void lifecycle_leave_thread(int killed_by);

/* Prepares for an end of the calling thread alone (`all`: of each thread) that no hook sees: by a
 * sandbox, or by its own bare exit(2), with the wait(2) status `expected`. If it is the main
 * thread, the process may be meant to end with it. Context: calm. */
void lifecycle_may_end_unseen(int expected, bool all);

/* Does the same for all threads, the helper among them, after a last export. Context: calm. */
void lifecycle_leave_process(void);

/* Keeps the helper out of all libraries during a bare clone(2) that copies the process: the child
 * would get a copy of one in the middle of a change. Called before it. If it returns true, call
 * lifecycle_after_bare_child() afterwards, in this process only. Context: any. */
bool lifecycle_before_bare_child(void);
void lifecycle_after_bare_child(void);

/* Called before libc's fork(), which then calls the fork handlers. In a signal handler that may
 * have interrupted a malloc it sets libc single-threaded, if the thread is alone apart from the
 * helper. It may wait for the helper, at most ten seconds. Async-signal-safe: yes. */
void lifecycle_before_fork(void);

/* Has the helper load its libraries (helper_load_early) before the process loses sight of its
 * files. In a forked child this also starts the helper. Context: calm. */
void lifecycle_load_early(void);

#endif
