/* Writes every thread with its stack as text: the replies to `goroutine?debug=1` and `debug=2`.
 * Context: flush. */
#ifndef OTELPROF_THREAD_TEXT_H
#define OTELPROF_THREAD_TEXT_H

#include "encode/pprof_sum.h"

/* Writes the threads of `sum`, a sum of PPROF_GOROUTINE; NULL: writes that there was no memory.
 * `full` writes one block per thread; otherwise, threads with equal stacks share a block. */
void write_threads(const struct pprof_sum *sum, bool full, struct wire *to);

#endif
