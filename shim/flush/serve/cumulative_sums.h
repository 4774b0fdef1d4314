/* Sums all exports since the start, for requests without `seconds`: one sum for each kind of
 * profile that is cumulative (AT_START in pprof_kinds.def) and is profiled.
 *
 * The sums begin when the process first listens, and go on while it does not: a scraper computes
 * differences of them, so no export may be missing. Context of all: flush.
 */
#ifndef OTELPROF_CUMULATIVE_SUMS_H
#define OTELPROF_CUMULATIVE_SUMS_H

#include "encode/pprof_sum.h"

#include <stdbool.h>
#include <stdint.h>

struct cumulative_sums {
    bool are_open;
    uint64_t since_unix; /* begin of the first interval that they have */
    /* by pprof_kind_summed(). NULL: the kind is not profiled, or not cumulative */
    struct pprof_sum *of[PPROF_KINDS];
};

/* Opens the sums, unless they are open. `profiles`: PROFILE_* bits that are profiled. */
void cumulative_sums_open(struct cumulative_sums *sums, unsigned profiles, uint64_t since_unix);
void cumulative_sums_close(struct cumulative_sums *sums);

/* Adds a part of an export. `first`: it is the export's first part. */
void cumulative_sums_add(struct cumulative_sums *sums, const struct otlp_writer *writer,
                         bool first);

/* Returns the memory of the sums, in bytes. */
uint64_t cumulative_sums_bytes(const struct cumulative_sums *sums);

#endif
