/* How often a thread's contentions are sampled at present: wait/contention.h. */
#ifndef OTELPROF_CONTENTION_RATE_H
#define OTELPROF_CONTENTION_RATE_H

#include <stdint.h>

/* Of one thread, which alone reads and writes it. All zero at first. */
struct contention_rate {
    uint64_t interval; /* ns of delay that a sample stands for; 0: as the settings say */
    uint64_t since;    /* CLOCK_MONOTONIC, ns: when the samples were last counted from 0 */
    uint32_t samples;  /* since then */
    uint32_t settings; /* the version of the settings that the interval follows */
};

#endif
