/* Waits for conditions that no thread signals: polls them, with a short sleep in between.
 *
 * If the other thread can signal, use futex.h. Context: any. Async-signal-safe: yes; errno is
 * preserved, and no sleep is a cancellation point. */
#ifndef OTELPROF_WAIT_H
#define OTELPROF_WAIT_H

#include "futex.h"

#include <stdbool.h>

enum { WAIT_ROUND_NANO = 50 * 1000 };

/* Waits until `is_over(context)`, for at most `timeout_ms`. Returns false if it is still not
 * over. */
static inline bool wait_until_ms(bool (*is_over)(void *context), void *context,
                                 uint64_t timeout_ms) {
    if (is_over(context))
        return true;
    const int saved = errno;
    const uint64_t deadline = in_milliseconds(timeout_ms);
    bool over = false;
    while (!over && monotonic_nano() < deadline) {
        syscall(SYS_nanosleep, &(struct timespec){0, WAIT_ROUND_NANO}, NULL);
        over = is_over(context);
    }
    errno = saved;
    return over;
}

/* Waits as wait_until_ms() does, but for a number of sleeps of WAIT_ROUND_NANO, however long they
 * take on a busy machine. For waits that must not be given up only because time has passed. */
static inline bool wait_for_rounds(bool (*is_over)(void *context), void *context, uint32_t rounds) {
    const int saved = errno;
    bool over = is_over(context);
    for (uint32_t i = 0; !over && i < rounds; i++) {
        syscall(SYS_nanosleep, &(struct timespec){0, WAIT_ROUND_NANO}, NULL);
        over = is_over(context);
    }
    errno = saved;
    return over;
}

#endif
