/* Samples threads that block the signal by which CPU time is sampled.
 *
 * From the moment that such a thread blocks ours until its end, its timer raises libc's own signal
 * (libc_signal.h). A thread that inherits the mask changes its timer at its start; a thread that
 * sets the mask changes it before the call (hooks/mask.c), so that no signal of ours is ever
 * pending where the program may see it. Some masks are set unseen by the hooks (a system call by an
 * instruction, the mask in a signal's frame or a context's): the helper finds these threads because
 * they use CPU time and have no sample. A thread that blocks libc's signal, too, by such a call, is
 * counted (DROP_SIGNAL_BLOCKED), and its CPU time recorded without stacks. */
#ifndef OTELPROF_MASKED_THREADS_H
#define OTELPROF_MASKED_THREADS_H

#include "record/thread_table.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Chooses the signal of the calling thread, which begins to be sampled, before its timer is
 * created. Context: calm.
 */
void masked_threads_begin(struct thread_state *thread);

/* Changes the calling thread's signal if that thread is about to block ours by the kernel's mask
 * `set`. errno is preserved. Context: any, of the application's threads. Async-signal-safe: yes. */
void masked_threads_expect(uint64_t set);

/* Handles the mask that the calling thread, the main thread, has inherited by exec:
 * masked_threads_begin() came too early to see it. Context: calm, at start. */
void masked_threads_finish_init(void);

/* Forbids changing the signal of threads from now on, because a filter of system calls would kill
 * the thread for creating a timer. Context: any. */
void masked_threads_stop(void);

/* Checks a sample of a thread that blocks ours: if the signal has interrupted a call, libc's signal
 * is not used any more. Context: the handler. Async-signal-safe: yes. */
void masked_threads_after_sample(struct thread_state *thread, const ucontext_t *context);

/* Returns the signal by which the calling thread is sampled; 0: none. Context: any. */
int masked_threads_signal(void);

/* Finds threads that have set their mask unseen by the hooks. Context: the helper. */
void masked_threads_poll(void);

#endif
