/* Where this process's random numbers begin: from the kernel, so that processes started at the same
 * moment, and a parent and its children, draw different ones. Context: flush. */
#ifndef OTELPROF_RANDOM_SEED_H
#define OTELPROF_RANDOM_SEED_H

#include <stdint.h>

/* A state for random_next(), never 0. Without the kernel's help (a sandbox, too early in the boot):
 * from the clock and the process's and thread's ids. */
uint64_t random_seed(void);

#endif
