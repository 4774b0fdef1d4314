/* The samples of spans that last longer than a bound (OTEL_PROFILER_CONDITION=span>1s).
 *
 * A span is as long as the time from its first sample to its last, on all threads and over all
 * intervals: it lasts at least so long. So nothing of a shorter one is taken for a long one; a long
 * one of which few samples are taken may be missed. It is forgotten when it was not seen for as
 * long as the bound, for a minute, and for two intervals. Context of all: flush.
 */
#ifndef OTELPROF_LONG_SPANS_H
#define OTELPROF_LONG_SPANS_H

#include "encode/merge.h"
#include "harvest.h"
#include "span_table.h"

#include <stdint.h>

/* All 0 before the first interval. */
struct long_spans {
    struct span_table table;
    uint64_t bound_nano; /* 0: there is none, and no span is followed */
};

/* [begun, ended) of CLOCK_MONOTONIC. */
struct span_interval {
    uint64_t begun_nano;
    uint64_t ended_nano;
};

/* Looks at all samples of an interval, with the bound that holds at its end. What was lost is
 * counted (DROP_SPANS_FULL). */
void long_spans_look(struct long_spans *spans, const struct merge *merge, uint64_t bound_nano,
                     struct span_interval interval, const struct capture_api *api);

/* Whether a sample of the interval that was looked at last is of such a span. `spans`: a struct
 * long_spans. A merge_choice. */
bool long_spans_has(const void *spans, const struct harvest_sample *sample);

void long_spans_close(struct long_spans *spans);

#endif
