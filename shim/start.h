/* Starts the profiler early if the program does not wait for its constructor. */
#ifndef OTELPROF_START_H
#define OTELPROF_START_H

/* Starts the profiler if its constructor has not run yet, because a thread is about to be created,
 * by a library's constructor that runs before ours. Idempotent. pthread_create's hook calls it, as
 * the only call into a higher layer. Context: calm, single-threaded. */
void start_before_constructor(void);

#endif
