/* Finds the interpreter's state of a blocked thread, for the helper: by the kernel's id of the
 * thread, in the interpreter's own lists.
 *
 * A state that was found is remembered and checked again each time: it names its thread. If a
 * thread is not known, the lists are scanned again, if there are new states in front of them, and
 * never for more than a hundredth of the time: there may be thousands of threads. Context: the
 * helper.
 */
#ifndef OTELPROF_PYTHON_THREADS_H
#define OTELPROF_PYTHON_THREADS_H

#include "python.h"
#include "python_reader.h"

#include <stdint.h>

struct python_threads;

/* Allocates in the profiler's memory: a forked child finds it empty. NULL: no memory. */
struct python_threads *python_threads_new(void);

/* Returns the PyThreadState of thread `tid`, that of the innermost interpreter if it has several;
 * 0: none is known now. The caller holds the interpreter (python_hold). */
uintptr_t python_threads_find(struct python_threads *threads, const struct python *python,
                              uint32_t tid);

/* Returns empty room for a walk of another thread's frames. */
struct python_pages *python_threads_pages(struct python_threads *threads);

#endif
