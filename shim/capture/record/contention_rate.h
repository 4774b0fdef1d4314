/* The present sampling rate of a thread's contentions: wait/contention.h. */
#ifndef OTELPROF_CONTENTION_RATE_H
#define OTELPROF_CONTENTION_RATE_H

#include <stdint.h>

/* Read and written by its thread alone. All zero at first. */
struct contention_rate {
    uint64_t interval; /* ns of delay that a sample counts as: the settings' interval, */
    uint64_t bound;    /* or this longer one, which keeps samples few; 0: no bound */
    uint64_t since_ns; /* CLOCK_MONOTONIC: when `samples` was last reset */
    uint32_t samples;  /* since then */
};

#endif
