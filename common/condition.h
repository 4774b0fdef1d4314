/* Parses the condition for exports (OTEL_PROFILER_CONDITION): "cpu>80%,rss>512MiB,span>1s".
 *
 * The value is a list of bounds, or the word "none". An interval is exported if the process has
 * exceeded a bound of CPU time or memory in it; of other intervals only the samples of spans that
 * exceed the bound of spans. Of several bounds of one kind, the lowest counts. Pure functions.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CONDITION_H
#define OTELPROF_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Holds the bounds of a condition; 0: there is no such bound. If all bounds are 0, every sample is
 * exported. */
struct condition {
    uint32_t cpu_percent; /* percent of one processor, as top shows it */
    uint32_t rss_kib;     /* resident set of the process */
    uint32_t span_milli;  /* time from the first sample of a span to its last */
};

static inline bool condition_is_set(struct condition condition) {
    return condition.cpu_percent || condition.rss_kib || condition.span_milli;
}

/* Parses the condition. Returns false if `text` is no condition; `*condition` is then unchanged. */
bool condition_parse(const char *text, struct condition *condition);

#endif
