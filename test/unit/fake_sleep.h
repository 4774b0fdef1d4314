/* Lets a test decide time and sleep: the clock advances only while a thread sleeps, and the test
 * runs a function of its own during each sleep. So the tests do not depend on the machine's load.
 */
#ifndef OTELPROF_TEST_FAKE_SLEEP_H
#define OTELPROF_TEST_FAKE_SLEEP_H

#include "clock.h"
#include "fake_syscall.h"

#include <linux/futex.h>
#include <stdatomic.h>

enum { MOST_SLEEPS = 1000000 }; /* bound of one test: no thread sleeps for ever */

static struct {
    _Atomic uint64_t now_nano; /* CLOCK_MONOTONIC */
    _Atomic int sleeps;
    void (*_Atomic while_asleep)(void); /* acts as other threads during each sleep; NULL: they do
                                         * nothing */
} fake_sleep;

static void fake_sleep_reset(void) {
    atomic_store(&fake_sleep.now_nano, NANO_PER_SECOND);
    atomic_store(&fake_sleep.sleeps, 0);
    atomic_store(&fake_sleep.while_asleep, NULL);
}

static uint64_t milliseconds_slept(void) {
    return (fake_sleep.now_nano - NANO_PER_SECOND) / NANO_PER_MILLI;
}

static void sleep_once(void) {
    void (*const act)(void) = atomic_load(&fake_sleep.while_asleep);
    assert_true(fake_sleep.sleeps++ < MOST_SLEEPS);
    if (act)
        act();
}

static uint64_t nano_of(const struct timespec *time) {
    return (uint64_t)time->tv_sec * NANO_PER_SECOND + (uint64_t)time->tv_nsec;
}

/* Advances the clock to the deadline if no other thread changes the word during the sleep. */
static long fake_futex_wait(const _Atomic uint32_t *word, uint32_t value, uint64_t deadline) {
    if (atomic_load(word) != value)
        return refuse_syscall(EAGAIN);
    sleep_once();
    if (atomic_load(word) != value)
        return 0;
    if (deadline > fake_sleep.now_nano)
        atomic_store(&fake_sleep.now_nano, deadline);
    return refuse_syscall(ETIMEDOUT);
}

static long fake_nanosleep(const struct timespec *time) {
    atomic_fetch_add(&fake_sleep.now_nano, nano_of(time));
    sleep_once();
    return refuse_syscall(EINTR); /* the sleep is ended by a signal */
}

static long fake_clock(clockid_t clock, struct timespec *time) {
    if (clock != CLOCK_MONOTONIC)
        return bare_syscall(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0);
    *time = timespec_of(fake_sleep.now_nano);
    return 0;
}

static long fake_syscall(long number, const long a[6]) {
    if (number == SYS_clock_gettime)
        return fake_clock((clockid_t)a[0], (struct timespec *)a[1]);
    if (number == SYS_nanosleep)
        return fake_nanosleep((const struct timespec *)a[0]);
    if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
        return fake_futex_wait((const _Atomic uint32_t *)a[0], (uint32_t)a[2],
                               nano_of((const struct timespec *)a[3]));
    return real_syscall(number, a);
}

#endif
