/* Implements load shedding (OTEL_PROFILER_CPU_THRESHOLD): samples nothing while the machine, or a
 * control group of the process, is busier than the threshold.
 *
 * If there is a threshold, the load since the last poll is measured once a second. One measurement
 * above the threshold stops sampling; it continues after five successive measurements below nine
 * tenths of the threshold, so that a load near the threshold does not toggle it. An unknown load
 * counts as not busy.
 * Context of all: flush.
 */
#ifndef OTELPROF_SHEDDING_H
#define OTELPROF_SHEDDING_H

#include "harvest.h"
#include "load.h"

#include <stdbool.h>
#include <stdint.h>

struct shedding {
    const struct capture_api *api;
    uint64_t threshold; /* percent; 0: no threshold */
    bool is_on;         /* sampling is stopped */
    bool is_idle;       /* sampling is off for another reason, so no sample is lost by shedding */
    bool is_blind;      /* the last poll could not read the load */
    unsigned calm;      /* successive polls below nine tenths of the threshold */
    uint64_t next;      /* time of the next poll: CLOCK_MONOTONIC, ns; UINT64_MAX: never */
    uint64_t since;     /* time until which `shed_nano` is counted: CLOCK_MONOTONIC, ns */
    uint64_t shed_nano; /* total time of shedding until then */
    struct load last;
};

/* Opens the shedding without a threshold. */
struct shedding shedding_open(const struct capture_api *api);

/* Sets the threshold. 0 disables shedding and lets sampling continue. */
void shedding_limit(struct shedding *shedding, uint64_t threshold);

/* Polls if a poll is due. Returns true if `is_on` has changed. */
bool shedding_poll(struct shedding *shedding);

/* Sets whether sampling is off for another reason; such time does not count as shed. */
void shedding_idle(struct shedding *shedding, bool is_idle);

/* Returns true if samples are being lost by shedding. */
bool shedding_sheds(const struct shedding *shedding);

/* Returns the total time in which samples were lost by shedding, in nanoseconds. */
uint64_t shedding_nano(const struct shedding *shedding);

/* Decides as shedding_poll() does, for a given load in percent; negative: unknown. Returns true if
 * `is_on` has changed. */
bool shedding_follow(struct shedding *shedding, double percent);

#endif
