/* Sums one kind of profile (pprof_kinds.def) over several exports, and encodes the sum for pprof.
 *
 * Values of a period add up. Values of one moment (live heap, threads) hold until the next export
 * replaces them. Above 16 MiB, new stacks are counted under `[other]`, so that totals stay
 * complete. After a failed allocation, a sum starts again from zero and is marked as incomplete.
 *
 * A difference covers the time between two moments. Its values of one moment are the values at the
 * end minus the values at the begin; a difference may be negative, as Go's are. Context of all:
 * flush.
 */
#ifndef OTELPROF_PPROF_SUM_H
#define OTELPROF_PPROF_SUM_H

#include "pprof_kind.h"
#include "pprof_tables.h"

struct pprof_sum;

/* Opens a sum. Returns NULL without memory. */
struct pprof_sum *pprof_sum_open(enum pprof_kind kind);
/* Opens a difference between two moments. Until pprof_sum_begin() only values that hold for one
 * moment (the live heap, the threads) are added: they are the first moment's. Threads are
 * distinguished by text labels alone, because numeric labels change from moment to moment. */
struct pprof_sum *pprof_sum_open_difference(enum pprof_kind kind);
void pprof_sum_close(struct pprof_sum *sum); /* accepts NULL */

/* Clears the values that hold for one moment. Call before the first part of each further export. */
void pprof_sum_next_export(struct pprof_sum *sum);
/* Begins the interval of a difference, after the export whose values are the first moment's. Does
 * nothing for other sums. */
void pprof_sum_begin(struct pprof_sum *sum);
/* Adds the profiles of this kind. Call after otlp_writer_pack() has succeeded: before that the
 * profiles are not complete. */
void pprof_sum_add(struct pprof_sum *sum, const struct otlp_writer *writer);
/* Marks the sum as incomplete, because there was no memory to read an export. */
void pprof_sum_mark_incomplete(struct pprof_sum *sum);

/* Holds the times of a profile. Cumulative sums have a duration of 0, as Go's do, because scrapers
 * treat a profile with a duration as a difference; they file sums under the time of the request. */
struct pprof_times {
    uint64_t unix_nano;
    uint64_t duration_nano;
    uint64_t since_unix_nano; /* start of cumulative sums; 0: the profile is not cumulative */
};

/* Encodes the sum with gzip. Returns malloc'ed memory that the caller owns. Returns NULL without
 * memory, or if a difference of moments is incomplete and therefore wrong. `kind` may be another
 * kind with the same values. */
uint8_t *pprof_sum_encode(struct pprof_sum *sum, enum pprof_kind kind,
                          const struct pprof_times *times, size_t *size);

/* Returns the memory in use, in bytes. */
size_t pprof_sum_bytes(const struct pprof_sum *sum);

/* --- for text --- */

struct pprof_label {
    const char *key;
    const char *text; /* NULL: the label is a number */
    int64_t number;
};

enum { PPROF_LABELS = 12 }; /* largest number of labels of a sample */

struct pprof_sample {
    int32_t stack;
    int64_t values[PPROF_VALUES];
    struct pprof_label labels[PPROF_LABELS];
    size_t label_count;
};

/* pprof_sum_count() counts samples, even those with zero values; pprof_sum_sample() reads one
 * sample. */
size_t pprof_sum_count(const struct pprof_sum *sum);
void pprof_sum_sample(const struct pprof_sum *sum, size_t number, struct pprof_sample *sample);
const struct pprof_tables *pprof_sum_tables(const struct pprof_sum *sum);

#endif
