/* Finds the calling thread's PyThreadState, without a call into the interpreter.
 *
 * PyGILState_GetThisThreadState() may not be called in a signal handler: up to 3.14 it is
 * pthread_getspecific(), which empties a value that pthread_setspecific() has half written on the
 * interrupted thread. And the state that is attached has no name. So the profiler learns where a
 * thread keeps the pointer: the states of all threads hang on the interpreters, and each names its
 * thread (thread_id is pthread_self()). The word of this thread that leads to its state is in
 * glibc's descriptor of the thread, where values of pthread keys lie, or among the interpreter's
 * thread-local variables (3.15). Its distance from the thread pointer is the same on every thread.
 * The state is believed if its thread_id is this thread's. In 3.11 the key has a thread's first
 * state: with subinterpreters, the one that holds the interpreter's lock is checked, too.
 */
#ifndef OTELPROF_PYTHON_THREAD_H
#define OTELPROF_PYTHON_THREAD_H

#include "python.h"
#include "python_reader.h"

#include <stdint.h>

/* The address of the calling thread's state, or 0: it has none, or it is not known yet. `python` is
 * held. Context: signal. Async-signal-safe: yes. */
uintptr_t python_thread_state(struct python *python, struct python_reader *reader);

#endif
