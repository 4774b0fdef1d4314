/* Which PyThreadState is the calling thread's, without a call into the interpreter.
 *
 * PyGILState_GetThisThreadState() may not be called in a signal handler: up to 3.14 it is
 * pthread_getspecific(), which empties a value that pthread_setspecific() has half written on the
 * interrupted thread. And the state that is attached has no name. So it is learned where a thread
 * keeps the pointer: the states of all threads hang on the interpreters, and each says whose it is
 * (thread_id is pthread_self()). The word of this thread's own that leads to its state is in
 * glibc's descriptor of the thread, where values of pthread keys lie, or among the interpreter's
 * thread-local variables (3.15). Its distance from the thread pointer is the same on every thread.
 * The state is believed if it says that it is this thread's.
 * Of 3.11 the key has the first state of a thread: of subinterpreters the one that holds the
 * interpreter's lock is asked, too.
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
