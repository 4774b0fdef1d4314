/* Sleeps on a word of memory until another thread of this process changes it (futex(2)).
 *
 * All functions preserve errno. Async-signal-safe: yes. */
#ifndef OTELPROF_FUTEX_H
#define OTELPROF_FUTEX_H

#include "clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while `*word` is `value`, until `deadline` (nanoseconds of CLOCK_MONOTONIC; UINT64_MAX:
 * without limit). May return early. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t deadline) {
    const struct timespec until = {(time_t)(deadline / NANO_PER_SECOND),
                                   (long)(deadline % NANO_PER_SECOND)};
    const int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &until, NULL,
            FUTEX_BITSET_MATCH_ANY);
    errno = saved;
}

/* Wakes all threads that sleep on `word`. */
static inline void futex_wake(_Atomic uint32_t *word) {
    const int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    errno = saved;
}

/* Returns the deadline that lies so many milliseconds ahead. */
static inline uint64_t in_milliseconds(uint64_t milliseconds) {
    return monotonic_nano() + milliseconds * NANO_PER_MILLI;
}

/* Returns the time left until `deadline`, rounded up; 0: the deadline is past. */
static inline uint64_t milliseconds_until(uint64_t deadline) {
    const uint64_t now = monotonic_nano();
    return now < deadline ? (deadline - now + NANO_PER_MILLI - 1) / NANO_PER_MILLI : 0;
}

#endif
