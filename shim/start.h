/* Starts the profiler before its constructor runs, if a thread is created earlier. */
#ifndef OTELPROF_START_H
#define OTELPROF_START_H

/* Starts the profiler if its constructor has not run yet. The hook of pthread_create calls this
 * function, because a library's constructor that runs before the profiler's may create a thread. It
 * is the only call of a hook into a higher layer. Idempotent. Context: calm, single-threaded. */
void start_before_constructor(void);

#endif
