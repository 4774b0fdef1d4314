/* The profiler gives way (OTEL_PROFILER_CPU_THRESHOLD): while the machine, or a control group of
 * the process, is busier than that, nothing is sampled.
 *
 * It is looked once a second, and only where there is a threshold: from one look to the next is
 * what counts. One look above it is enough to stop; sampling goes on once five looks in a row were
 * below nine tenths of it, so that a load at the threshold does not turn it on and off. What is not
 * known is not busy. Context of all: flush.
 */
#ifndef OTELPROF_SHEDDING_H
#define OTELPROF_SHEDDING_H

#include "harvest.h"
#include "load.h"

#include <stdbool.h>
#include <stdint.h>

struct shedding {
    const struct capture_api *api;
    uint64_t threshold; /* percent; 0 = none */
    bool is_on;         /* nothing is to be sampled, */
    bool is_idle;       /* and nothing would be: no sample is missing for it */
    bool is_blind;      /* the last look saw nothing */
    unsigned calm;      /* looks in a row that were below */
    uint64_t next;      /* when it is looked next: CLOCK_MONOTONIC, ns; UINT64_MAX: never */
    uint64_t since;     /* the last change: the same clock */
    uint64_t shed_nano; /* before that */
    struct load last;
};

/* No threshold yet. */
struct shedding shedding_open(const struct capture_api *api);

/* 0: never; what was off goes on. */
void shedding_limit(struct shedding *shedding, uint64_t threshold);

/* Looks, if it is due. true: `is_on` has changed. */
bool shedding_look(struct shedding *shedding);

/* Whether nothing would be sampled without it, either: such time does not count. */
void shedding_idle(struct shedding *shedding, bool is_idle);

/* Whether samples are missing for it at present. */
bool shedding_sheds(const struct shedding *shedding);

/* How long that was so far. */
uint64_t shedding_nano(const struct shedding *shedding);

/* The decision alone, of a look that saw `percent`; less than 0: nothing is known. */
bool shedding_follow(struct shedding *shedding, double percent);

#endif
