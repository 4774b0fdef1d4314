/* The functions that a frame lies in, as texts for people: what a table has in its rows, and what
 * an attribute lists where there is no stack to refer to. Context: flush.
 */
#ifndef OTELPROF_FUNCTION_NAMES_H
#define OTELPROF_FUNCTION_NAMES_H

#include "harvest.h"
#include "symbolize/symbolize.h"

enum { FUNCTION_NAME_BYTES = 256 };

/* Fills `names`, the innermost of inlined functions first, and returns how many these are, one at
 * least. Code without a name has its module's, as "[libc.so.6]", and code of no module
 * that nobody has reported "[anonymous]". What OTEL_PROFILER_REDACT hides is hidden. `interval`: as
 * harvest_sample has it.
 */
size_t function_names(const struct capture_api *api, struct symbolizer *symbolizer, uint64_t frame,
                      uint64_t interval, char names[static MAX_SYMBOL_LINES][FUNCTION_NAME_BYTES]);

#endif
