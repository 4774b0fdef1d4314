/* Watches what profiling costs, and asks the budget what is to become of the rates.
 *
 * It looks when an interval ends. In between it looks a second after rates were lowered or set
 * anew, and so on while that changes them: where the budget is not reached, nobody wakes. What it
 * measures is a stretch of time in which the settings stay as they are; when they change, another
 * begins. Context of all: flush.
 */
#ifndef OTELPROF_BUDGET_WATCH_H
#define OTELPROF_BUDGET_WATCH_H

#include "budget.h"
#include "harvest.h"

#include <stdbool.h>
#include <stdint.h>

struct budget_watch {
    const struct capture_api *api;
    struct budget budget;
    uint64_t begun; /* of the stretch: CLOCK_MONOTONIC, ns */
    uint64_t process_nano;
    uint64_t helper_nano;
    struct sampling_cost costs[SAMPLINGS];
    uint64_t interval_begun; /* the same of the present interval */
    uint64_t interval_helper_nano;
    double helper_share; /* of a processor, in the last interval */
    uint64_t next;       /* when it looks next, if no interval ends before; UINT64_MAX: not */
    bool is_rising;      /* it knows what the new rates will cost */
};

/* As a process begins to be watched, with the limit of the configuration. */
struct budget_watch budget_watch_open(const struct capture_api *api);

/* Capture has been told other settings. */
void budget_watch_begin(struct budget_watch *watch);

/* The end of an interval, or `next`. true: budget_lower() says something else. */
bool budget_watch_look(struct budget_watch *watch, const struct settings_values *set,
                       const struct settings_values *in_force, bool interval_ends);

#endif
