/* Finds the calling thread's PyThreadState, without a call into the interpreter.
 *
 * PyGILState_GetThisThreadState() may not be called in a signal handler: up to 3.14 it is
 * pthread_getspecific(), which empties a value that pthread_setspecific() has half written on the
 * interrupted thread. No symbol leads to the attached state either. So the profiler learns where a
 * thread keeps the pointer: the interpreters list the states of all threads, and each state names
 * its thread (thread_id is pthread_self()). The pointer is in glibc's descriptor of the thread,
 * which has the values of pthread keys, or among the interpreter's thread-local variables (3.15),
 * at the same distance from the thread pointer on every thread. A state is used only if its
 * thread_id is this thread's. In 3.11 the key has a thread's first state; with subinterpreters, the
 * state that holds the interpreter's lock is checked, too.
 */
#ifndef OTELPROF_PYTHON_THREAD_H
#define OTELPROF_PYTHON_THREAD_H

#include "python.h"
#include "python_reader.h"

#include <stdint.h>

/* Returns the address of the calling thread's PyThreadState; 0: the thread has none, or the place
 * of the pointer is not known yet. The caller holds `python`. Context: signal. Async-signal-safe:
 * yes. */
uintptr_t python_thread_state(struct python *python, struct python_reader *reader);

#endif
