/* Keeps the account of a thread's time: wall = CPU + run-queue delay + off CPU.
 *
 * The kernel measures all but the last, so the time off CPU is known exactly whenever the thread is
 * blocked. The helper polls the threads and records their waits (wait/wait_sampler.h), after it has
 * subtracted their time from this account; a thread that ends records the rest. So each nanosecond
 * is recorded once. No account is kept if no profile type needs it. Units: nanoseconds.
 */
#ifndef OTELPROF_WALL_TIME_H
#define OTELPROF_WALL_TIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WALL_ENDED UINT64_MAX

struct wall_time {
    uint64_t begun_ns;        /* CLOCK_MONOTONIC; 0: no account is kept */
    uint64_t cpu_before_ns;   /* CPU time of the thread at `begun_ns` */
    uint64_t delay_before_ns; /* run-queue delay of the thread at `begun_ns` */
    /* time off CPU that samples have; WALL_ENDED: the thread has recorded the rest */
    _Atomic uint64_t accounted_ns;
    _Atomic uint64_t delay_ns; /* run-queue delay at the helper's last observation */
    _Atomic bool sampled;      /* a wait was recorded under the thread's own id */
    _Atomic uint64_t
        /* CLOCK_MONOTONIC: when the thread began to wait for the last export; 0: it has not */
        left_ns;
};

/* Resets the account of a slot without a thread. */
static inline void wall_clear(struct wall_time *wall) {
    wall->begun_ns = 0;
    wall->cpu_before_ns = 0;
    wall->delay_before_ns = 0;
    atomic_store_explicit(&wall->accounted_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&wall->delay_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&wall->sampled, false, memory_order_relaxed);
    atomic_store_explicit(&wall->left_ns, 0, memory_order_relaxed);
}

/* Ends the account at `now`, because the thread ends the process and from now on waits only for the
 * profiler. Context: the thread itself. Async-signal-safe: yes. */
static inline void wall_leave(struct wall_time *wall, uint64_t now) {
    uint64_t none = 0;
    /* pairs with wall_is_left() and wall_present() */
    (void)atomic_compare_exchange_strong(&wall->left_ns, &none, now);
}

/* Returns true after wall_leave(). */
static inline bool wall_is_left(const struct wall_time *wall) {
    /* pairs with wall_leave() */
    return atomic_load_explicit(&wall->left_ns, memory_order_acquire) != 0;
}

/* Returns `now`, or the time of the account's end if that is earlier. */
static inline uint64_t wall_present(const struct wall_time *wall, uint64_t now) {
    /* pairs with wall_leave() */
    const uint64_t left_ns = atomic_load_explicit(&wall->left_ns, memory_order_acquire);
    return left_ns && left_ns < now ? left_ns : now;
}

/* Returns the time off CPU until `now` of a thread that has used `cpu_ns` and was delayed for
 * `delay_ns`. Returns 0 if no account is kept, or if the clocks disagree. Context: any.
 * Async-signal-safe: yes. */
static inline uint64_t wall_off_nano(const struct wall_time *wall, uint64_t now, uint64_t cpu_ns,
                                     uint64_t delay_ns) {
    const uint64_t spent =
        (cpu_ns > wall->cpu_before_ns ? cpu_ns - wall->cpu_before_ns : 0) +
        (delay_ns > wall->delay_before_ns ? delay_ns - wall->delay_before_ns : 0);
    const uint64_t end = wall_present(wall, now);
    const uint64_t lived = end > wall->begun_ns ? end - wall->begun_ns : 0;
    return wall->begun_ns && lived > spent ? lived - spent : 0;
}

/* Takes the time off CPU up to `off` that is not accounted yet, and returns it. Returns 0 if there
 * is none, or if the thread has ended. Context: any. Async-signal-safe: yes. */
static inline uint64_t wall_take(struct wall_time *wall, uint64_t off) {
    uint64_t accounted_ns = atomic_load_explicit(&wall->accounted_ns, memory_order_relaxed);
    while (accounted_ns < off) /* skips the loop if the value is WALL_ENDED */
        if (atomic_compare_exchange_weak(&wall->accounted_ns, &accounted_ns, off))
            return off - accounted_ns;
    return 0;
}

/* Takes at most `nano` of the time that wall_take() would take. Returns the part that it has taken.
 * Context: the helper. */
static inline uint64_t wall_take_part(struct wall_time *wall, uint64_t off, uint64_t nano) {
    uint64_t accounted_ns = atomic_load_explicit(&wall->accounted_ns, memory_order_relaxed);
    while (accounted_ns < off) {
        const uint64_t part = off - accounted_ns < nano ? off - accounted_ns : nano;
        if (atomic_compare_exchange_weak(&wall->accounted_ns, &accounted_ns, accounted_ns + part))
            return part;
    }
    return 0;
}

/* Takes the rest, and closes the account. Context: the thread itself. */
static inline uint64_t wall_take_rest(struct wall_time *wall, uint64_t off) {
    const uint64_t accounted_ns = atomic_exchange(&wall->accounted_ns, WALL_ENDED);
    return accounted_ns < off ? off - accounted_ns : 0;
}

/* Gives back time that was taken for a sample, if there was no memory for the sample; the next
 * sample takes the time. Does nothing if the account is closed. Context: the helper. */
static inline void wall_give_back(struct wall_time *wall, uint64_t taken) {
    uint64_t accounted_ns = atomic_load_explicit(&wall->accounted_ns, memory_order_relaxed);
    while (accounted_ns != WALL_ENDED && accounted_ns >= taken)
        if (atomic_compare_exchange_weak(&wall->accounted_ns, &accounted_ns, accounted_ns - taken))
            return;
}

#endif
