/* Finds the interpreter's state of a blocked thread, for the helper: by the kernel's id of the
 * thread, in the interpreter's own lists.
 *
 * A state that was found is remembered, and checked at each use, because a state names its thread.
 * If a thread is not known, the lists are scanned again, but only if there are new states at their
 * heads, and for at most a hundredth of the time, because there may be thousands of threads.
 * Context: the helper.
 */
#ifndef OTELPROF_PYTHON_THREADS_H
#define OTELPROF_PYTHON_THREADS_H

#include "python.h"
#include "python_reader.h"

#include <stdint.h>

struct python_threads;

/* Allocates the table in the profiler's memory, which a forked child finds empty. Returns NULL if
 * there is no memory. */
struct python_threads *python_threads_new(void);

/* Returns the PyThreadState of thread `tid`; if it has several, the one of the innermost
 * interpreter. 0: none is known now. The caller holds the interpreter (python_hold). */
uintptr_t python_threads_find(struct python_threads *threads, const struct python *python,
                              uint32_t tid);

/* Returns empty room for a walk of another thread's frames. */
struct python_pages *python_threads_pages(struct python_threads *threads);

#endif
