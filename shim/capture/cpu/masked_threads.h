/* Threads that block the signal by which CPU time is sampled.
 *
 * Such a thread's timer raises libc's own signal instead (libc_signal.h), from when it blocks ours
 * until its end: a thread that inherits the mask, at its start; one that sets it, before the call
 * that does (hooks/mask.c), so that no signal of ours is ever pending where the program may see it.
 * The helper finds masks set unseen by the hooks (a system call by an instruction, the mask in a
 * signal's frame or a context's): the thread has used CPU time and had no sample. A thread that
 * blocks libc's signal, too, by such a call, is counted (DROP_SIGNAL_BLOCKED), and its CPU time
 * recorded without stacks. */
#ifndef OTELPROF_MASKED_THREADS_H
#define OTELPROF_MASKED_THREADS_H

#include "record/thread_table.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Called when the calling thread begins to be sampled, before its timer is created. Context: calm.
 */
void masked_threads_begin(struct thread_state *thread);

/* Called when the calling thread is about to block the signals of the kernel's mask `set`. errno is
 * preserved. Context: any, of the application's threads. Async-signal-safe: yes. */
void masked_threads_expect(uint64_t set);

/* Handles the mask that the calling thread, the main thread, has inherited by exec:
 * masked_threads_begin() was too early for it. Context: calm, at start. */
void masked_threads_finish_init(void);

/* Forbids creating timers: a filter of system calls would kill. Context: any. */
void masked_threads_stop(void);

/* Called after a sample of a thread that blocks ours: where the signal has interrupted a call,
 * libc's signal is not used any more. Context: the handler. Async-signal-safe: yes. */
void masked_threads_after_sample(struct thread_state *thread, const ucontext_t *context);

/* Returns the signal by which the calling thread is sampled; 0: none. Context: any. */
int masked_threads_signal(void);

/* Polls for threads that have set their mask unseen. Context: the helper. */
void masked_threads_poll(void);

#endif
