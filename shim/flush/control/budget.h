/* OTEL_PROFILER_MAX_OVERHEAD: what profiling may cost, and the rates that keep it.
 *
 * The budget is a share of the program's own CPU time, of the last minutes' highest and of a tenth
 * of a processor at least, so that a phase in which the program does nothing takes nothing from the
 * one that follows. The helper thread's CPU time goes first, up to half of the budget; what is left
 * is for sampling on the program's threads. Where that costs more, the kinds of sampling that cost
 * most are lowered, at once, to the rates at which all fit. After an interval without that they
 * rise again, to twice as much at most; where the program suddenly does four times as much as it
 * did, to what is set.
 * Each sample weighs by the rate that it was taken at, so sums stay unbiased. Rates depend on what
 * was before, never on what a sample would hold.
 * Pure functions. Context of all: flush.
 */
#ifndef OTELPROF_BUDGET_H
#define OTELPROF_BUDGET_H

#include "harvest.h"
#include "settings.h"

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_NONE UINT64_MAX

/* No rate is lowered beyond these by the budget; what is set may be. */
#define BUDGET_LEAST_FREQUENCY       UINT64_C(10)         /* Hz of CPU samples */
#define BUDGET_LONGEST_INTERVAL      (UINT64_C(64) << 20) /* bytes between two allocations */
#define BUDGET_LONGEST_LOCK_INTERVAL UINT64_C(1000000000) /* nanoseconds of delay */
/* So much is never over it: the first samples of a process are dear, and come once. */
#define BUDGET_BURST_NANO UINT64_C(5000000)

enum { BUDGET_MINUTES = 5 };

/* What a stretch of time saw, in which the settings did not change. */
struct overhead {
    uint64_t nano;         /* its length */
    uint64_t program_nano; /* the program's own CPU time */
    uint64_t helper_nano;
    struct sampling_cost of[SAMPLINGS];
};

struct budget {
    uint64_t limit; /* millionths; BUDGET_NONE */
    /* the most, and the least, that may be in force; UINT64_MAX and 0: what is set */
    uint64_t most_frequency;
    uint64_t least_interval;
    uint64_t least_lock_interval;
    double peaks[BUDGET_MINUTES]; /* processors that the program used at most, by minute */
    uint64_t minute_nano;         /* how much of the first of them has passed */
    double lowered_at;            /* processors of the budget that rates were lowered by */
    double debt;                  /* nanoseconds over the budget, not yet made up for */
    bool fell;                    /* since the last end of an interval */
};

enum budget_change { BUDGET_STAYS, BUDGET_FALLS, BUDGET_RISES, BUDGET_RETURNS };

struct budget budget_open(uint64_t limit);

/* Another limit. Without one nothing is lowered. */
void budget_limit(struct budget *budget, uint64_t limit);

/* A stretch has passed: what becomes of the rates. `set`: what they would be without a budget;
 * `in_force`: what they were. `interval_ends`: they may rise. */
enum budget_change budget_step(struct budget *budget, const struct overhead *seen,
                               const struct settings_values *set,
                               const struct settings_values *in_force, bool interval_ends);

/* What is to be in force. */
struct settings_values budget_lower(const struct budget *budget, const struct settings_values *set);

#endif
