/* Detects programs that are never profiled. Some would fail with a second thread, with the
 * profiler's memory, or with hooks beside a sanitizer's; others were not started with the profiler,
 * or another copy of the profiler profiles them. process_filter.h applies the user's choice. */
#ifndef OTELPROF_INELIGIBLE_H
#define OTELPROF_INELIGIBLE_H

#include "log.h"

#include <stdbool.h>

/* Identifies this copy of the profiler: otelprof_version() returns it. In another copy of the
 * profiler that function returns another string. */
extern const char profiler_version[];

/* Returns true if this process must not be profiled, and logs the reason. `arguments` are main's,
 * NULL if unknown. Context: calm, at start. */
bool is_ineligible(const struct log *log, char *const *arguments);

/* Returns true if valgrind runs this process, and logs it at debug level. Its findings, counts and
 * output cover the whole process, including the helper and its memory, so such a process is
 * excluded by default. Context: calm, at start. */
bool is_under_valgrind(const struct log *log);

#endif
