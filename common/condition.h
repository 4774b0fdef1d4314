/* When what was recorded is exported (OTEL_PROFILER_CONDITION): "cpu>80%,rss>512MiB,span>1s".
 *
 * The value is a list of bounds, of which any one is enough, or the word "none". There is one of
 * each sort at most: of two the lower. Pure functions. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CONDITION_H
#define OTELPROF_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0: no bound. All are 0: everything is exported. */
struct condition {
    uint32_t cpu_percent; /* of one processor, as top shows it */
    uint32_t rss_kib;     /* of the process */
    uint32_t span_milli;  /* from the first sample of a span to its last */
};

static inline bool condition_is_set(struct condition condition) {
    return condition.cpu_percent || condition.rss_kib || condition.span_milli;
}

/* false: `text` is no condition; `*condition` is as it was. */
bool condition_parse(const char *text, struct condition *condition);

#endif
