/* Watches what profiling costs, and asks the budget what is to become of the rates.
 *
 * It looks when an interval ends. In between it looks a second after rates were lowered or set
 * anew, and so on while that changes them: where the budget is not reached, nobody wakes. What it
 * measures is a stretch of time. A change of the settings begins another, unless one that ends
 * within a second is under way: a client that changes them again and again would put off its end
 * for ever. What such a stretch has cost is held against the densest of its rates, and another
 * look follows a second later. Context of all: flush.
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
    struct settings_values densest; /* of the stretch: the highest rates that were in force */
    bool is_mixed;                  /* there were others, too */
    uint64_t interval_begun;        /* the same of the present interval */
    uint64_t interval_helper_nano;
    double helper_share; /* of a processor, in the last interval */
    uint64_t next;       /* when it looks next, if no interval ends before; UINT64_MAX: not */
    bool is_rising;      /* it knows what the new rates will cost */
    bool has_decided;    /* the next change of the settings is its own */
};

/* As a process begins to be watched, with the limit of the configuration. */
struct budget_watch budget_watch_open(const struct capture_api *api,
                                      const struct settings_values *in_force);

/* Other settings are in force. */
void budget_watch_begin(struct budget_watch *watch, const struct settings_values *in_force);

/* The end of an interval, or `next`. true: budget_lower() says something else. */
bool budget_watch_look(struct budget_watch *watch, const struct settings_values *set,
                       const struct settings_values *in_force, bool interval_ends);

#endif
