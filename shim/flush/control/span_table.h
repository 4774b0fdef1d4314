/* Stores the spans of which samples were taken, with the times of their first and last sample on
 * any thread.
 *
 * A span is identified by trace id and span id. The caller removes spans that were not seen for
 * some time. The table holds at most SPANS_MOST spans: if it is full, the table removes spans that
 * were last seen before the current interval, and if that is not enough, refuses the new span. It
 * counts removed spans, and samples of refused spans. In either case a span seems shorter than it
 * is, never longer. The table is an open hash table that doubles; a span costs 40 bytes. Context of
 * all: flush.
 */
#ifndef OTELPROF_SPAN_TABLE_H
#define OTELPROF_SPAN_TABLE_H

#include "sample_context.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPANS_MOST = 49152 }; /* three quarters of 65,536 places: 2.5 MiB */

struct span_entry;

/* Holds the spans; a table of zeros is empty. */
struct span_table {
    struct span_entry *entries;
    size_t places; /* a power of two, or 0 */
    size_t count;
    uint64_t recent_nano; /* begin of the current interval */
    bool removed_old;     /* old spans were removed in the current interval */
    uint64_t lost;        /* spans that were removed too early, and samples of refused spans */
};

/* Begins an interval, at `nano` (CLOCK_MONOTONIC). */
void span_table_begin(struct span_table *table, uint64_t nano);

/* Records when samples of the span in `context` were taken. Ignores a `seen` of zeros. */
void span_table_record(struct span_table *table, const struct sample_context *context,
                       struct span_seen seen);

/* Returns the nanoseconds from the span's first sample to its last; 0: unknown span. */
uint64_t span_table_length(const struct span_table *table, const struct sample_context *context);

/* Removes spans last seen before `nano`, and returns their number. Does nothing without memory. */
size_t span_table_forget(struct span_table *table, uint64_t nano);

/* Removes all spans, and frees the memory. */
void span_table_close(struct span_table *table);

#endif
