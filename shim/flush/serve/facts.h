/* Write the state of the process and of its profiler: as JSON, in Prometheus' format, and as an
 * HTML page. Context: flush. */
#ifndef OTELPROF_FACTS_H
#define OTELPROF_FACTS_H

#include "serve_state.h"

void write_status(const struct serve *serve, struct wire *to);
void write_metrics(const struct serve *serve, struct wire *to);
void write_index(const struct serve *serve, struct wire *to);

#endif
