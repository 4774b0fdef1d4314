/* The life of the profiler in this process: what happens at fork, in a sandbox, and at the end,
 * which is one last harvest and export, bounded in time, and the helper at rest. */
#ifndef OTELPROF_LIFECYCLE_H
#define OTELPROF_LIFECYCLE_H

#include "config.h"
#include "log.h"

#include <stdbool.h>

/* Capture is armed: has fork and the ends of the process call us. Both pointers are kept.
 * `sandbox`: PR_GET_SECCOMP as it was at the start. Context: calm, single-threaded, once. */
void lifecycle_begin(const struct config *config, const struct log *log, int sandbox);

/* Instead: this process is not profiled. Its hooks forward. Context: calm, at start. */
void lifecycle_decline(void);

/* Whether this process has lived long enough to send anything. Async-signal-safe: yes. */
bool lifecycle_may_send(void);

/* Idempotent; does nothing in a process that is not the one that started (a vfork()ed child shares
 * our memory). Where another thread's end has begun, waits for that (end_turn.h). A signal that
 * came during the last export, to this thread, comes again behind it. None is a cancellation point.
 * Context: calm, when the process is about to run its exit handlers. */
void lifecycle_end(void);

/* The same where the next that happens is the end: such a signal is not waited for. */
void lifecycle_end_without_handlers(void);

/* The same where the thread may be in the middle of anything: `_exit` in a signal handler, or a
 * signal that ends the process. A helper that does not run yet is not started. Async-signal-safe:
 * yes. */
void lifecycle_end_at_once(void);

/* Whether nothing of ours happens on the calling thread any more, or anywhere in this process.
 * Async-signal-safe: yes, without a system call. */
bool lifecycle_is_out(void);

/* The calling thread, and the threads and children that it will have, may soon be killed for a
 * system call of ours, by the signal `killed_by`: none is made on them any more. Context: calm. */
void lifecycle_leave_thread(int killed_by);

/* The calling thread (`all`: every one) may soon be gone without a word, alone: killed by a
 * sandbox, or by its own bare exit(2), with the status `expected` (as wait(2) tells it). If it is
 * the main thread, the process may be meant to end with it. Context: calm. */
void lifecycle_may_end_unseen(int expected, bool all);

/* The same of all threads, the helper among them: after a last export it is brought to rest.
 * Context: calm. */
void lifecycle_leave_process(void);

/* Around a bare clone(2) that copies the process: keeps the helper out of what the child gets a
 * copy of. true: the second is to be called, in this process alone. Context: any. */
bool lifecycle_before_bare_child(void);
void lifecycle_after_bare_child(void);

/* Before libc's fork(), which then calls the handlers: in a signal handler that may have
 * interrupted a malloc, of a thread that is alone but for the helper, libc is told so. It may wait
 * for the helper, at most ten seconds. Async-signal-safe: yes. */
void lifecycle_before_fork(void);

/* Before the process loses sight of its files: the helper, which a forked child gets here, loads
 * what it will need (helper_load_early). Context: calm. */
void lifecycle_load_early(void);

#endif
