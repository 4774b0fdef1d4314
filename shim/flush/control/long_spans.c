#include "long_spans.h"

#include "clock.h"

static const uint64_t least_kept = 60 * (uint64_t)NANO_PER_SECOND;

static bool is_of_span(const struct harvest_sample *sample) {
    return sample->context && context_has_span(sample->context);
}

static uint64_t longer(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

void long_spans_update(struct long_spans *spans, const struct merge *merge, uint64_t bound_nano,
                       struct span_interval interval, const struct capture_api *api) {
    struct span_table *const table = &spans->table;
    const uint64_t lost = table->lost;
    spans->bound_nano = bound_nano;
    if (!bound_nano) {
        span_table_close(table);
        return;
    }
    span_table_begin(table, interval.begun_nano);
    for (size_t i = 0; i < merge->items.count; i++) {
        const struct harvest_sample *const sample = merge->items.items[i];
        if (is_of_span(sample))
            span_table_record(table, sample->context, sample->seen);
    }
    const uint64_t length = interval.ended_nano - interval.begun_nano;
    const uint64_t kept = longer(longer(bound_nano, least_kept), 2 * length);
    (void)span_table_forget(table, interval.ended_nano > kept ? interval.ended_nano - kept : 0);
    if (table->lost != lost)
        api->counters.count_drop(DROP_SPANS_FULL, table->lost - lost);
}

bool long_spans_has(const void *spans, const struct harvest_sample *sample) {
    const struct long_spans *const of = spans;
    return of->bound_nano && is_of_span(sample) &&
           span_table_length(&of->table, sample->context) > of->bound_nano;
}

void long_spans_close(struct long_spans *spans) {
    span_table_close(&spans->table);
}
