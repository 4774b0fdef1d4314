/* Begins and ends each thread of the application in the capture world, and decides which calls may
 * be made on it in between.
 *
 * The creating thread registers a new thread, which begins in its own start routine and ends after
 * it. A thread leaves earlier if it is about to enter a sandbox, which may kill for a system call
 * of ours. */
#ifndef OTELPROF_THREAD_LIFE_H
#define OTELPROF_THREAD_LIFE_H

#include "record/thread_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Registers the calling thread under `thread` (from thread_table_take()). Context: the thread
 * itself, calm. */
void thread_begin(struct thread_state *thread, struct stack_range stack);

/* Marks the thread as past its start routine. Its destructors are still sampled; a later
 * capture_sweep_threads() frees the slot. Context: the thread itself, calm. */
void thread_end(struct thread_state *thread);

/* Stops all recording and system calls of ours on the calling thread; the thread's CPU time from
 * then on is in no profile. Context: the thread itself, calm. */
void capture_leave_thread(void);

/* Ends the account of the calling thread, which is about to wait for the last export: from then on
 * the thread waits for the profiler, not for the program. Context: any. Async-signal-safe: yes. */
void capture_await_end(void);

/* Returns whether the calling thread has left, or was created by a thread that has left. Context:
 * any, of the application's threads. */
bool capture_has_left(void);

/* Returns whether the profiler may act on the calling thread: it belongs to capture's process, and
 * not to a child of vfork() or of a bare clone(2). If the thread has left, returns false without a
 * system call. Context: any. */
bool capture_is_of_this_thread(void);

/* Frees the slots of up to `limit` threads that have ended. Context: calm. */
void capture_sweep_threads(uint32_t limit);

/* Returns whether a thread may be created here: its stack is known to its end, and no signal
 * handler of the application is on it. Context: a malloc hook, profiler_tls.inside 0. */
bool thread_is_calm(void);

/* Returns true if the calling thread may be in a signal handler of the program's, where no thread
 * can be created. Context: any, of the application's threads. */
bool thread_may_be_in_handler(void);

/* Requests the helper if the process has none yet, and has used the CPU time of a sample or
 * profiles waits. Called in hooks of calls in which a thread may be created, if the stack permits
 * it. Costs one load if the process has a helper. Preserves errno. Context: any hook. */
void capture_offer_helper(void);

/* Counts a thread of the application as ended. Context: calm. */
void thread_is_gone(void);

#endif
