/* Reads the profiler's clocks, in nanoseconds.
 *
 * The times come from the kernel, not from libc: another preload (libfaketime) may define a
 * clock_gettime that takes locks, and whose time differs from the futexes'. The thread's CPU clock,
 * which the handler reads for each sample, is a system call in any case. A clock that cannot be
 * read, for example that of a thread that has ended, is 0.
 *
 * Context: any. Async-signal-safe: yes; errno is preserved.
 */
#ifndef OTELPROF_CLOCK_H
#define OTELPROF_CLOCK_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* These constants have 64 bits, so that products have 64 bits, too: 5 seconds do not fit into
 * 32. */
#define NANO_PER_SECOND UINT64_C(1000000000)
#define NANO_PER_MILLI  UINT64_C(1000000)

static inline uint64_t clock_nano(clockid_t clock) {
    struct timespec now;
    const int saved = errno;
    /* falls back to libc if a sandbox refuses the call, because the vDSO reads most clocks without
     * a call
     */
    if (syscall(SYS_clock_gettime, clock, &now) != 0 && clock_gettime(clock, &now) != 0)
        now = (struct timespec){0, 0};
    errno = saved;
    return (uint64_t)now.tv_sec * NANO_PER_SECOND + (uint64_t)now.tv_nsec;
}

static inline uint64_t monotonic_nano(void) {
    return clock_nano(CLOCK_MONOTONIC);
}

static inline uint64_t realtime_nano(void) {
    return clock_nano(CLOCK_REALTIME);
}

/* Returns the CPU time, user and system, that the calling thread has used. */
static inline uint64_t thread_cpu_nano(void) {
    return clock_nano(CLOCK_THREAD_CPUTIME_ID);
}

/* Returns the CPU clock of another thread of this process, by its id (the kernel's
 * include/linux/posix-timers.h: complement of the id, per-thread bit, scheduler's clock). */
static inline clockid_t cpu_clock_of(uint32_t tid) {
    return (clockid_t)(~tid << 3 | 4 | 2);
}

/* Returns the earlier of two moments, or the shorter of two durations. UINT64_MAX stands for never.
 */
static inline uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline struct timespec timespec_of(uint64_t nano) {
    return (struct timespec){(time_t)(nano / NANO_PER_SECOND), (long)(nano % NANO_PER_SECOND)};
}

#endif
