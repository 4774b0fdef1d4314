/* Names the functions of a frame for human readers: in the rows of a table, and in an attribute
 * that lists functions because it cannot refer to a stack. Context: flush.
 */
#ifndef OTELPROF_FUNCTION_NAMES_H
#define OTELPROF_FUNCTION_NAMES_H

#include "harvest.h"
#include "symbolize/symbolize.h"

enum { FUNCTION_NAME_BYTES = 256 };

/* Fills `names`, innermost inlined function first, and returns their number, at least one. Longer
 * names are cut. Code without a name gets its module's name, as "[libc.so.6]"; code outside of
 * modules that no compiler has reported is "[anonymous]". Names that match OTEL_PROFILER_REDACT are
 * hidden. `interval`: as in harvest_sample. */
size_t function_names(const struct capture_api *api, struct symbolizer *symbolizer, uint64_t frame,
                      uint64_t interval, char names[static MAX_SYMBOL_LINES][FUNCTION_NAME_BYTES]);

#endif
