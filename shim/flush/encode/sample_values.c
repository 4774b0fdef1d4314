#include "sample_values.h"

#include <stdlib.h>

/* Returns the sample's value: rounded, or in whole periods, with the rest for the next sample. */
static int64_t exported_value(struct profile_exporter *exporter,
                              const struct harvest_sample *sample,
                              const struct profile_value *profile) {
    const double value = sample->values[profile->index];
    if (profile->measure != PERIODS)
        return (int64_t)(value + 0.5);
    const uint64_t period = exporter->api->harvest.period(profile_kinds[sample->kind].period);
    uint64_t *const remainder = &exporter->remainders.of[sample->kind];
    const uint64_t total = *remainder + (uint64_t)value;
    *remainder = total % period;
    return (int64_t)(total / period);
}

static int compare_by_number(const void *a, const void *b) {
    const size_t left = ((const struct valued_sample *)a)->number;
    const size_t right = ((const struct valued_sample *)b)->number;
    return (left > right) - (left < right);
}

static int compare_by_value(const void *a, const void *b) {
    const int64_t left = ((const struct valued_sample *)a)->value;
    const int64_t right = ((const struct valued_sample *)b)->value;
    return left == right ? compare_by_number(a, b) : (left < right) - (left > right);
}

static bool is_idle_sample(const struct valued_sample *valued) {
    return valued->sample && (valued->sample->flags & SAMPLE_FLAG_IDLE);
}

/* Puts threads that only wait for work last among equal values, because they matter least: in a
 * profile of all threads each thread has the value one. */
static int compare_by_value_busy_first(const void *a, const void *b) {
    const struct valued_sample *const left = a;
    const struct valued_sample *const right = b;
    if (left->value == right->value && is_idle_sample(left) != is_idle_sample(right))
        return is_idle_sample(left) - is_idle_sample(right);
    return compare_by_value(a, b);
}

/* Joins the smallest samples beyond the limit into one, the last, which keeps their total. */
static void limit_samples(struct sample_values *values, size_t max) {
    if (values->count <= max)
        return;
    qsort(values->items, values->count, sizeof *values->items, compare_by_value_busy_first);
    int64_t rest = 0;
    for (size_t i = max - 1; i < values->count; i++)
        rest += values->items[i].value;
    values->items[max - 1] = (struct valued_sample){NULL, 0, rest};
    values->count = max;
    qsort(values->items, max - 1, sizeof *values->items, compare_by_number);
}

/* Sorts each thread's samples by value; they come thread by thread. Encoded neighbours of similar
 * value are most alike (zstd's result is a tenth smaller, gzip's 5 %), and a heap's two profiles,
 * of objects and of bytes, list their stacks in nearly the same order. */
static void order_samples(struct sample_values *values) {
    size_t past;
    for (size_t first = 0; first < values->count; first = past) {
        const struct harvest_sample *const sample = values->items[first].sample;
        past = first + 1;
        while (sample && past < values->count && values->items[past].sample &&
               is_same_thread(sample, values->items[past].sample))
            past++;
        qsort(&values->items[first], past - first, sizeof *values->items, compare_by_value);
    }
}

struct sample_values sample_values_collect(struct profile_exporter *exporter,
                                           const struct merge *merge, struct export_part part,
                                           const struct profile_value *profile) {
    struct sample_values values = {calloc(part.past - part.first + 1, sizeof *values.items), 0};
    for (size_t i = part.first; values.items && i < part.past; i++) {
        const struct harvest_sample *const sample = merge->items.items[i];
        if (sample->kind != profile->kind)
            continue;
        const int64_t value = exported_value(exporter, sample, profile);
        if (value > 0)
            values.items[values.count++] = (struct valued_sample){sample, i, value};
    }
    limit_samples(&values, exporter->api->config->max_samples);
    order_samples(&values);
    return values;
}
