/* Decides whether a whole interval is exported (OTEL_PROFILER_CONDITION), by comparing the
 * process's figures at the interval's end with the bounds. long_spans.h handles bounds of span
 * durations.
 *
 * CPU time is that of all threads except the profiler's, from one export to the next. In the first
 * interval it counts from the start of profiling: CPU time that another program used in the process
 * before an exec is excluded. Memory is the resident set at the end of the interval. A figure that
 * cannot be read meets the condition, so that no profile is lost. Without a condition nothing is
 * read.
 * Context of all: flush.
 */
#ifndef OTELPROF_EXPORT_CONDITION_H
#define OTELPROF_EXPORT_CONDITION_H

#include "condition.h"
#include "harvest.h"

#include <stdbool.h>
#include <stdint.h>

/* Holds the figures of an interval; a negative figure is unknown. */
struct interval_figures {
    double cpu_percent;
    double rss_kib;
};

struct export_condition {
    const struct capture_api *api;
    struct condition bounds;
    bool began;        /* `cpu_nano` is the value at the start of the interval */
    uint64_t cpu_nano; /* CPU time of the process without the helper's */
    bool holds;        /* the interval that ended last meets the condition */
};

/* Call at the start of the first interval. */
struct export_condition export_condition_open(const struct capture_api *api);

/* Call at the end of an interval, with its length. */
void export_condition_update(struct export_condition *condition, uint64_t nano);

/* Returns true if there is no condition, or if a figure that has a bound exceeds it or is unknown.
 * Bounds of spans are not compared. */
bool export_condition_holds(struct condition bounds, struct interval_figures figures);

#endif
