/* What the process says about itself and its profiler: as JSON, for Prometheus, as a page.
 * Context: flush. */
#ifndef OTELPROF_FACTS_H
#define OTELPROF_FACTS_H

#include "serve_state.h"

void write_status(const struct serve *serve, struct wire *to);
void write_metrics(const struct serve *serve, struct wire *to);
void write_index(const struct serve *serve, struct wire *to);

#endif
