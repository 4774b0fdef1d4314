/* Finds the samples of spans that last longer than a bound (OTEL_PROFILER_CONDITION=span>1s).
 *
 * A span's length is measured from its first sample to its last, on all threads and over all
 * intervals. This length is at most the span's duration: so no short span counts as long, but a
 * long span with few samples may be missed. A span is forgotten after the longest of the bound, a
 * minute, and two intervals without a sample. Context of all: flush.
 */
#ifndef OTELPROF_LONG_SPANS_H
#define OTELPROF_LONG_SPANS_H

#include "encode/merge.h"
#include "harvest.h"
#include "span_table.h"

#include <stdint.h>

/* Holds the spans that are tracked. Initially all 0. */
struct long_spans {
    struct span_table table;
    uint64_t bound_nano; /* 0: no bound; spans are not tracked */
};

/* Holds a span's time from `begun` to before `ended`, by CLOCK_MONOTONIC. */
struct span_interval {
    uint64_t begun_nano;
    uint64_t ended_nano;
};

/* Processes all samples of an interval, with the bound that holds at its end. Counts lost spans
 * (DROP_SPANS_FULL). */
void long_spans_update(struct long_spans *spans, const struct merge *merge, uint64_t bound_nano,
                       struct span_interval interval, const struct capture_api *api);

/* Returns true if a sample of the last processed interval belongs to a long span. `spans` is a
 * struct long_spans. Usable as a merge_choice. */
bool long_spans_has(const void *spans, const struct harvest_sample *sample);

void long_spans_close(struct long_spans *spans);

#endif
