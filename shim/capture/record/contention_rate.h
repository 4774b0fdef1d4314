/* How often a thread's contentions are sampled at present: wait/contention.h. */
#ifndef OTELPROF_CONTENTION_RATE_H
#define OTELPROF_CONTENTION_RATE_H

#include <stdint.h>

/* Of one thread, which alone reads and writes it. All zero at first. */
struct contention_rate {
    uint64_t interval; /* ns of delay that a sample stands for: that of the settings, or, */
    uint64_t bound;    /* if it is longer, the one that keeps samples few; 0: any does */
    uint64_t since;    /* CLOCK_MONOTONIC, ns: when the samples were last counted from 0 */
    uint32_t samples;  /* since then */
};

#endif
