/* What the application calls is no cancellation point: a thread that is cancelled in our part of it
 * would end in the middle, and at exit the process would not end.
 * Context: any. Async-signal-safe: yes, without a system call. */
#ifndef OTELPROF_CANCELLATION_H
#define OTELPROF_CANCELLATION_H

#include <pthread.h>

/* Returns what the calling thread had: for cancellation_restore(). */
static inline int cancellation_disable(void) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancellation_restore(int before) {
    pthread_setcancelstate(before, &before);
}

#endif
