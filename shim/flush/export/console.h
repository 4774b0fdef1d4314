/* Implements OTEL_PROFILES_EXPORTER=console: prints the hottest functions of each interval as a
 * table on stderr, and the share that belongs to spans. Context: flush.
 */
#ifndef OTELPROF_CONSOLE_H
#define OTELPROF_CONSOLE_H

#include "encode/merge.h"
#include "harvest.h"
#include "symbolize/symbolize.h"

/* Writes one table for each kind of profile_kinds.def that has samples, but only while descriptor 2
 * is the stderr that the process started with. `seconds`: the length of the interval. */
void console_write(const struct capture_api *api, struct symbolizer *symbolizer,
                   const struct merge *merge, double seconds);

#endif
