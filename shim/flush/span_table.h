/* The spans that samples were taken of, and when: the first sample and the last, of all threads.
 *
 * A span is known by both of its ids. What was not seen for some time is forgotten, by whoever
 * knows how long that is. There are SPANS_MOST at most: when one more comes, those are forgotten
 * that were seen before the interval that is being looked at, and if that is not enough it is
 * refused. Both are counted. Either way a span seems shorter than it is, never longer.
 * An open hash table that doubles; a span costs 40 bytes. Context of all: flush.
 */
#ifndef OTELPROF_SPAN_TABLE_H
#define OTELPROF_SPAN_TABLE_H

#include "sample_context.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPANS_MOST = 49152 }; /* three quarters of 65,536 places: 2.5 MiB */

struct span_entry;

/* All 0: empty. */
struct span_table {
    struct span_entry *entries;
    size_t places; /* a power of two, or 0 */
    size_t count;
    uint64_t recent_nano; /* when the interval began that is being looked at */
    bool thinned;         /* in it */
    uint64_t lost;        /* spans forgotten before their time, and samples of spans refused */
};

/* An interval is looked at that began at `nano` (CLOCK_MONOTONIC). */
void span_table_begin(struct span_table *table, uint64_t nano);

/* `context` names a span, of which samples were taken then; `seen` of all 0 says nothing. */
void span_table_see(struct span_table *table, const struct sample_context *context,
                    struct span_seen seen);

/* From the first sample of the span to its last, in nanoseconds; 0: it is not known. */
uint64_t span_table_length(const struct span_table *table, const struct sample_context *context);

/* Forgets what was seen last before `nano`: how many spans. Without memory nothing changes. */
size_t span_table_forget(struct span_table *table, uint64_t nano);

/* Forgets all, and gives the memory back. */
void span_table_close(struct span_table *table);

#endif
