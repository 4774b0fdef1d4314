/* Implements OTEL_PROFILER_MAX_OVERHEAD: limits the cost of profiling by changing sampling rates.
 *
 * The budget is a share of the CPU time that the program itself uses at present, of a tenth of a
 * processor at least. An idle phase does not reduce the budget of the next phase: the budget is at
 * least that of a quarter of the peak, the highest usage of the last five minutes, averaged over
 * ten seconds. The whole peak would be too much for a program that other processes keep from
 * running. The helper thread's CPU time is subtracted first, up to half of the budget; the rest is
 * for sampling on the program's threads. If sampling costs more, the most expensive kinds are
 * lowered at once, to rates at which all kinds fit. After an interval without lowering, rates rise
 * again, at most by a factor of two. If the program suddenly uses four times as much CPU time as it
 * did while rates were lowered, because it was idle or other processes kept it from running, rates
 * return to the configured ones at once. Each sample is weighted by the rate at which it was taken,
 * so sums stay unbiased. Rates depend on past cost only, never on the contents of a sample. Pure
 * functions. Context of all: flush.
 */
#ifndef OTELPROF_BUDGET_H
#define OTELPROF_BUDGET_H

#include "harvest.h"
#include "settings.h"

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_NONE UINT64_MAX

/* Bounds the rates: the budget lowers no rate beyond these limits. The configured rate may be
 * lower. */
#define BUDGET_LEAST_FREQUENCY       UINT64_C(10)         /* Hz of CPU samples */
#define BUDGET_LONGEST_INTERVAL      (UINT64_C(64) << 20) /* bytes between two allocations */
#define BUDGET_LONGEST_LOCK_INTERVAL UINT64_C(1000000000) /* nanoseconds of delay */
/* Allows this excess, in nanoseconds, at any time, because a process's first samples are expensive,
 * and come only once. */
#define BUDGET_BURST_NANO UINT64_C(5000000)

enum { BUDGET_MINUTES = 5 };

/* Holds the measurements of a stretch of time, in which the settings changed only if the stretch is
 * mixed (budget_watch.h). */
struct overhead {
    uint64_t nano;         /* length of the stretch */
    uint64_t program_nano; /* the program's own CPU time */
    uint64_t helper_nano;
    struct sampling_cost of[SAMPLINGS];
};

/* Averages the program's usage over stretches. */
struct budget_window {
    uint64_t nano;
    uint64_t program_nano;
};

struct budget {
    uint64_t limit; /* millionths of the program's CPU time; or BUDGET_NONE */
    /* bounds of the rates in force; UINT64_MAX and 0: the configured rates hold */
    uint64_t most_frequency;
    uint64_t least_interval;
    uint64_t least_lock_interval;
    double peaks[BUDGET_MINUTES]; /* most processors that the program used in a window, by minute */
    /* most processors that the program used in one stretch, by minute. Counts only stretches in
     * which rates were lowered, or had to be: in all others the configured rates were cheap
     * enough. */
    double bursts[BUDGET_MINUTES];
    struct budget_window window; /* the window that is being averaged */
    uint64_t minute_nano;        /* elapsed part of the newest of these minutes */
    double lowered_at;           /* greatest burst when rates last fell or returned */
    double debt;                 /* nanoseconds over the budget that have not been compensated */
    bool fell;                   /* rates were lowered since the last end of an interval */
};

enum budget_change { BUDGET_STAYS, BUDGET_FALLS, BUDGET_RISES, BUDGET_RETURNS };

struct budget budget_open(uint64_t limit);

/* Sets another limit. BUDGET_NONE restores the configured rates. */
void budget_limit(struct budget *budget, uint64_t limit);

/* Evaluates a stretch and decides about the rates. `set`: the rates without a budget; `in_force`:
 * the rates during the stretch, the highest of several; `interval_ends`: rates may rise. */
enum budget_change budget_step(struct budget *budget, const struct overhead *seen,
                               const struct settings_values *set,
                               const struct settings_values *in_force, bool interval_ends);

/* Returns the settings to apply. */
struct settings_values budget_lower(const struct budget *budget, const struct settings_values *set);

#endif
