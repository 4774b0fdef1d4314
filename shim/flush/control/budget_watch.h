/* Measures the cost of profiling, and lets the budget decide about the rates.
 *
 * The watch measures when an interval ends. In between, it measures one second after rates were
 * lowered or set, and then each second as long as a measurement changes the rates. So while the
 * budget is kept, the watch does not wake the helper. A measurement covers a stretch of time, with
 * the same rates throughout if possible: a change of the settings begins a new stretch. If the
 * present stretch ends within a second, it continues instead, because a client that changes
 * settings continually must not postpone its end for ever. The cost of a stretch with several rates
 * is compared with the highest of them, and the rates that follow are measured again a second
 * later. Context of all: flush.
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
    uint64_t begun; /* begin of the stretch: CLOCK_MONOTONIC, ns */
    uint64_t process_nano;
    uint64_t helper_nano;
    struct sampling_cost costs[SAMPLINGS];
    struct settings_values densest; /* highest rates that were in force during the stretch */
    bool is_mixed;                  /* the stretch had other rates, too */
    uint64_t interval_begun;        /* values at the begin of the current interval */
    uint64_t interval_helper_nano;
    uint64_t started_helper_nano; /* value when the first export was made; UINT64_MAX: not yet */
    unsigned interval_ends;       /* number of ended intervals, until the first export is made */
    double helper_share;          /* processors used by the helper in the last interval */
    uint64_t next;                /* next check, unless an interval ends before; UINT64_MAX: none */
    /* the cost of the new rates is predictable, so no check follows after a second */
    bool is_rising;
    bool has_decided; /* the next change of the settings is the budget's own */
};

/* Begins to watch the process, with the configured limit. */
struct budget_watch budget_watch_open(const struct capture_api *api,
                                      const struct settings_values *in_force);

/* Records that other settings are in force. */
void budget_watch_begin(struct budget_watch *watch, const struct settings_values *in_force);

/* Call when an interval ends, and at `next`. Returns true if budget_lower() has another result than
 * before. */
bool budget_watch_poll(struct budget_watch *watch, const struct settings_values *set,
                       const struct settings_values *in_force, bool interval_ends);

#endif
