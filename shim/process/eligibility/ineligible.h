/* Detects programs that are never profiled, for their own sake: those that cannot bear a second
 * thread, memory other than their own, or hooks other than a sanitizer's; those that were not
 * started with the profiler; and those that another copy of it profiles. choice.h has the user's
 * choice. */
#ifndef OTELPROF_INELIGIBLE_H
#define OTELPROF_INELIGIBLE_H

#include "log.h"

#include <stdbool.h>

/* otelprof_version() returns it. Another copy of the profiler returns one of its own. */
extern const char profiler_version[];

/* Returns true if this process is one, and logs the reason. `arguments` are main's, NULL if
 * unknown. Context: calm, at start. */
bool is_ineligible(const struct log *log, char *const *arguments);

/* Returns true if valgrind runs this process, and logs it at debug level. Its findings, counts and
 * output cover the whole process, including the helper and its memory, so such a process is
 * excluded by default. Context: calm, at start. */
bool is_under_valgrind(const struct log *log);

#endif
