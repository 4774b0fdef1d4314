/* The start of the profiler, where the program does not wait for our constructor. */
#ifndef OTELPROF_START_H
#define OTELPROF_START_H

/* A thread is about to be created, and our constructor has not run: other libraries' constructors
 * may come first. Idempotent. The one call upwards: pthread_create's hook makes it. Context: calm,
 * single-threaded. */
void start_before_constructor(void);

#endif
