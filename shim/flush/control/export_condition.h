/* Whether all that an interval recorded is exported (OTEL_PROFILER_CONDITION): what the process did
 * in it is compared with the bounds at its end. How long spans last is not asked here
 * (long_spans.h).
 *
 * CPU time is that of all threads of the process but the profiler's own, from one export to the
 * next; in the first interval since profiling began: what another program used in the process,
 * before an exec, is in none. Memory is what is resident at the end of the interval. What cannot be
 * read holds: then rather too much is exported than too little. Where there is no condition nothing
 * is read. Context of all: flush.
 */
#ifndef OTELPROF_EXPORT_CONDITION_H
#define OTELPROF_EXPORT_CONDITION_H

#include "condition.h"
#include "harvest.h"

#include <stdbool.h>
#include <stdint.h>

/* Less than 0: not known. */
struct interval_figures {
    double cpu_percent;
    double rss_kib;
};

struct export_condition {
    const struct capture_api *api;
    struct condition bounds;
    bool began;        /* `cpu_nano` is that at the start of the interval */
    uint64_t cpu_nano; /* the process's, without ours */
    bool holds;        /* in the interval that has ended last */
};

/* At the start of the first interval. */
struct export_condition export_condition_open(const struct capture_api *api);

/* The end of an interval of that length. */
void export_condition_look(struct export_condition *condition, uint64_t nano);

/* The decision alone. */
bool export_condition_holds(struct condition bounds, struct interval_figures figures);

#endif
