/* Every thread with its stack, as text: what `goroutine?debug=1` and `debug=2` answer. Context:
 * flush.
 */
#ifndef OTELPROF_THREAD_TEXT_H
#define OTELPROF_THREAD_TEXT_H

#include "pprof_sum.h"

/* Of the kind PPROF_GOROUTINE; NULL: there was no memory for it, which is written. `full`: one
 * block a thread; otherwise one for threads of equal stacks. */
void write_threads(const struct pprof_sum *sum, bool full, struct wire *to);

#endif
