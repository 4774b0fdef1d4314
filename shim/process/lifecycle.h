/* Runs the profiler's life in this process: at fork, in a sandbox, and at the end. The end is one
 * last harvest and export, bounded in time; after that the helper sleeps. */
#ifndef OTELPROF_LIFECYCLE_H
#define OTELPROF_LIFECYCLE_H

#include "config.h"
#include "log.h"

#include <stdbool.h>

/* Registers handlers for fork and for the ends of the process, after capture was armed. Keeps both
 * pointers. `sandbox`: PR_GET_SECCOMP at the start. Context: calm, single-threaded, once. */
void lifecycle_begin(const struct config *config, const struct log *log, int sandbox);

/* Turns the profiler off in a process that is not profiled: its hooks only forward. Called instead
 * of lifecycle_begin(). Context: calm, at start. */
void lifecycle_decline(void);

/* Returns true if this process has lived long enough to send samples. Async-signal-safe: yes. */
bool lifecycle_may_send(void);

/* Ends the profiler. Idempotent; does nothing in a process other than the one that started (a
 * vfork()ed child shares its memory). If another thread's end has begun, waits for that end
 * (end_turn.h). A signal that came to this thread during the last export is sent again afterwards.
 * None of the functions lifecycle_end*() is a cancellation point. Context: calm, when the process
 * is about to run its exit handlers. */
void lifecycle_end(void);

/* Ends the profiler as lifecycle_end() does, but drops such a signal, because the process ends
 * next. */
void lifecycle_end_without_handlers(void);

/* Ends the profiler as lifecycle_end() does, where the thread may be in the middle of any call:
 * `_exit` in a signal handler, or a fatal signal. Starts no helper. Async-signal-safe: yes. */
void lifecycle_end_at_once(void);

/* Returns true if the profiler does nothing more on the calling thread, or in this process.
 * Async-signal-safe: yes, without a system call. */
bool lifecycle_is_out(void);

/* Stops the profiler on the calling thread, and on the threads and children that it creates later:
 * a system call of the profiler's may soon kill them by the signal `killed_by`. Context: calm. */
void lifecycle_leave_thread(int killed_by);

/* Prepares for an end of the calling thread alone (`all`: of each thread) that no hook sees: by a
 * sandbox, or by its own bare exit(2), with the wait(2) status `expected`. If the calling thread is
 * the main thread, the process may have to end with it. Context: calm. */
void lifecycle_may_end_unseen(int expected, bool all);

/* Notes that the program installs a filter of system calls. `may_log`: the filter spares the calls
 * of a line of the log; otherwise only the helper logs from now on. `may_start`: a helper can start
 * and export behind the filter; otherwise a child that has no helper gets none. Context: any. */
void lifecycle_see_filter(bool may_log, bool may_start);

/* Undoes lifecycle_see_filter() with these arguments, because the kernel has refused the filter.
 * Context: any. */
void lifecycle_forget_filter(bool may_log, bool may_start);

/* Stops the profiler on all threads, the helper included, after a last export. Context: calm. */
void lifecycle_leave_process(void);

/* Keeps the helper out of all libraries during a bare clone(2) that copies the process: otherwise
 * the child could get a copy of a library in the middle of a change. Called before the clone. If
 * the result is true, the caller must call lifecycle_after_bare_child() afterwards, in this process
 * only. Context: any. */
bool lifecycle_before_bare_child(void);
void lifecycle_after_bare_child(void);

/* Prepares libc's fork(), which then calls the fork handlers. In a signal handler that may have
 * interrupted a malloc, sets libc single-threaded if the only other thread is the helper. Waits for
 * a helper at work, at most ten seconds. Async-signal-safe: yes. */
void lifecycle_before_fork(void);

/* Makes the helper load its libraries (helper_load_early) before the process loses access to their
 * files. In a forked child this also starts the helper. Context: calm. */
void lifecycle_load_early(void);

#endif
