/* Every thread of the process, where it is at the time of a harvest: what a goroutine profile is
 * for Go.
 *
 * A thread that waits has the stack and the wait that it was just found in (wait_sampler.h), and
 * how long it has been there; any other is running, or ready to, and has the stack of its last CPU
 * sample. A thread that no sample has met yet has its start routine. Threads that were made past
 * our pthread_create are asked of the kernel alone: without a frame pointer, and without the ends
 * of their stack.
 */
#ifndef OTELPROF_THREAD_SNAPSHOT_H
#define OTELPROF_THREAD_SNAPSHOT_H

#include "wait_sampler.h"

/* Visits a sample of each thread. Context: the helper, between wait_sampler_harvest() and the next
 * look, with threads swept. */
void thread_snapshot_visit(struct wait_sampler *waits,
                           void (*visit)(void *arg, const struct sample *sample), void *arg);

#endif
