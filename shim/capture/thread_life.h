/* The beginning and end of each thread of the application in the capture world, and what may be
 * done on it in between.
 *
 * A thread is registered by the one that creates it, begins in its own start routine, and ends past
 * it. It may leave before: a sandbox that it is about to enter may kill for a call of ours.
 */
#ifndef OTELPROF_THREAD_LIFE_H
#define OTELPROF_THREAD_LIFE_H

#include "record/thread_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Registers the calling thread under `thread` (from thread_table_take()). Context: the thread
 * itself, calm. */
void thread_begin(struct thread_state *thread, struct stack_range stack);

/* The thread is past its start routine. Its destructors are sampled still; the slot is given back
 * by a later capture_sweep_threads(). Context: the thread itself, calm. */
void thread_end(struct thread_state *thread);

/* Nothing is recorded on the calling thread any more, and no system call of ours is made on it;
 * what it uses until its end is in no profile. Context: the thread itself, calm. */
void capture_leave_thread(void);

/* Whether the calling thread has left, or was created by one that has. Context: any, of the
 * application's threads. */
bool capture_has_left(void);

/* Whether something of ours may happen on the calling thread, which is of the process that capture
 * is about, and not of a child of vfork() or of a bare clone(2). Where the thread has left: false,
 * without a system call. Context: any. */
bool capture_is_of_this_thread(void);

/* Gives back slots of up to `limit` threads that are gone by now. Context: calm. */
void capture_sweep_threads(uint32_t limit);

/* Whether a thread may be created here: the stack is known to its end and holds no signal handler
 * of the application. Context: a malloc hook, own_tls.inside 0. */
bool thread_is_calm(void);

/* A call that the program has made, and in which a thread may be created if the stack says so: a
 * process that has none yet, and has worked, may have its helper made here. It costs a load where
 * there is one. Preserves errno. Context: any hook. */
void capture_offer_helper(void);

/* Counts a thread of the application as gone. Context: calm. */
void thread_is_gone(void);

#endif
