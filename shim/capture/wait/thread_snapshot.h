/* Takes a snapshot of all threads of the process at a harvest, like Go's goroutine profile.
 *
 * A waiting thread has the stack and the wait in which the harvest found it (wait_sampler.h), and
 * the duration of the wait so far. Any other thread is running or runnable, and has the stack of
 * its last CPU sample, or its start routine if it has no sample yet. For threads that were created
 * without the profiler's pthread_create the kernel is the only source: their frame pointer and the
 * bounds of their stack are not known.
 */
#ifndef OTELPROF_THREAD_SNAPSHOT_H
#define OTELPROF_THREAD_SNAPSHOT_H

#include "wait_sampler.h"

/* Visits a sample of each thread that has not retired, if the thread profile is on. Context: the
 * helper, between wait_sampler_harvest() and the next poll, after ended threads were swept. */
void thread_snapshot_visit(struct wait_sampler *waits,
                           void (*visit)(void *arg, const struct sample *sample), void *arg);

#endif
