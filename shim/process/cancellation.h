/* Turns cancellation off while the profiler runs inside a call of the application, because such a
 * call is no cancellation point. A thread that is cancelled in the profiler's code would end in the
 * middle of it, and at exit the process would never end. Context: any. Async-signal-safe: yes,
 * without a system call. */
#ifndef OTELPROF_CANCELLATION_H
#define OTELPROF_CANCELLATION_H

#include <pthread.h>

/* Returns the calling thread's previous state, for cancellation_restore(). */
static inline int cancellation_disable(void) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancellation_restore(int before) {
    pthread_setcancelstate(before, &before);
}

#endif
