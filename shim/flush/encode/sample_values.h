/* Selects the samples of one profile: gives each its value, limits their number, and orders them.
 *
 * A value is rounded, or counted in whole periods: the remainder goes to the next sample, and after
 * the last one to the next interval (struct remainders), so that count × period adds up to the CPU
 * clock. Samples without a value are left out. Beyond OTEL_PROFILER_MAX_SAMPLES the smallest become
 * one sample, "[other]", with their total. Context: flush.
 */
#ifndef OTELPROF_SAMPLE_VALUES_H
#define OTELPROF_SAMPLE_VALUES_H

#include "profile_export.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Pairs a sample with its value in one profile. */
struct valued_sample {
    const struct harvest_sample *sample; /* NULL: the sum of the samples left out, "[other]" */
    size_t number;                       /* index in the merge */
    int64_t value;
};

struct sample_values {
    struct valued_sample *items; /* malloc'ed; the caller frees it; NULL: no memory */
    size_t count;
};

/* Collects the samples of a part of the merge that have a value in this profile: thread by thread,
 * in the order of the merge, and each thread's largest first. */
struct sample_values sample_values_collect(struct profile_exporter *exporter,
                                           const struct merge *merge, struct export_part part,
                                           const struct profile_value *profile);

static inline bool is_same_thread(const struct harvest_sample *a, const struct harvest_sample *b) {
    return a->tid == b->tid && strcmp(a->thread_name, b->thread_name) == 0;
}

#endif
