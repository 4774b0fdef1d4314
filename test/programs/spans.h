/* Publishes spans as OTEP 4947 describes: has the thread-local variable, and calls that set and
 * clear the calling thread's span. Each byte of the two ids holds the span's number, except for the
 * first of the span's id, which holds the thread's. */
#ifndef TEST_SPANS_H
#define TEST_SPANS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SPANS_EXPORT __attribute__((visibility("default")))
/* Orders writes for a reader that interrupts this very thread. */
#define SPANS_FENCE atomic_signal_fence(memory_order_seq_cst)

struct span_record {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t valid;
    uint8_t flags;
    uint16_t attribute_bytes;
    uint8_t attributes[64];
};

extern SPANS_EXPORT __thread struct span_record *otel_thread_ctx_v1;

static inline void span_write(struct span_record *record, unsigned thread, unsigned span) {
    memset(record->trace_id, (int)span, sizeof record->trace_id);
    memset(record->span_id, (int)span, sizeof record->span_id);
    record->span_id[0] = (uint8_t)thread;
}

/* Changes the thread's one record, which is not valid meanwhile. */
static inline void span_change(struct span_record *record, unsigned thread, unsigned span) {
    record->valid = 0;
    SPANS_FENCE;
    span_write(record, thread, span);
    SPANS_FENCE;
    record->valid = 1;
    SPANS_FENCE;
    otel_thread_ctx_v1 = record;
}

/* Publishes a new record for each span. */
static inline void span_swap(unsigned thread, unsigned span) {
    struct span_record *const old = otel_thread_ctx_v1;
    struct span_record *const record = calloc(1, sizeof *record);
    span_write(record, thread, span);
    record->valid = 1;
    SPANS_FENCE;
    otel_thread_ctx_v1 = record;
    SPANS_FENCE;
    free(old);
}

#endif
