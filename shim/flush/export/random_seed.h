/* Seeds this process's random numbers from the kernel, so that processes that start at the same
 * moment, and a parent and its children, draw different numbers. Context: flush. */
#ifndef OTELPROF_RANDOM_SEED_H
#define OTELPROF_RANDOM_SEED_H

#include <stdint.h>

/* Returns a state for random_next(), never 0. If the kernel has no random bytes (a sandbox, too
 * early in the boot), makes the state from the clock and the ids of process and thread. */
uint64_t random_seed(void);

#endif
