/* Is a library that publishes spans for the loading program: spans.h. Its variable is its own,
 * whichever object has one of that name before it. */
/* flags: -Wl,-Bsymbolic */
#include "spans.h"

SPANS_EXPORT __thread struct span_record *otel_thread_ctx_v1;
static __thread struct span_record own;

SPANS_EXPORT void span_begin(unsigned thread, unsigned span, int fixed) {
    if (fixed)
        span_change(&own, thread, span);
    else
        span_swap(thread, span);
}

SPANS_EXPORT void span_end(int fixed) {
    struct span_record *const old = otel_thread_ctx_v1;
    otel_thread_ctx_v1 = NULL;
    SPANS_FENCE;
    if (!fixed)
        free(old);
}
