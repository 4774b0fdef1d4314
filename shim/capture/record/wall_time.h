/* The account of a thread's time: wall = CPU + run-queue delay + off CPU.
 *
 * The first three are the kernel's, so what is off CPU is known exactly, whenever the thread stands
 * still. The helper looks at the threads, and says what they wait for (wait/wait_sampler.h); what
 * it says it takes off here first, and a thread that ends takes the rest. So each nanosecond is
 * told once. Nothing is kept where no kind of profile needs it. Units: nanoseconds.
 */
#ifndef OTELPROF_WALL_TIME_H
#define OTELPROF_WALL_TIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WALL_ENDED UINT64_MAX

struct wall_time {
    uint64_t begun;         /* CLOCK_MONOTONIC; 0: no account is kept */
    uint64_t cpu_before;    /* what it had used by then */
    uint64_t delay_before;  /* likewise */
    _Atomic uint64_t told;  /* off CPU, as samples of it have it; WALL_ENDED: all of it is */
    _Atomic uint64_t delay; /* on the run queue, when the helper last looked */
    _Atomic bool sampled;   /* some wait of it was told under its own id */
};

/* Of no thread. */
static inline void wall_clear(struct wall_time *wall) {
    wall->begun = 0;
    wall->cpu_before = 0;
    wall->delay_before = 0;
    atomic_store_explicit(&wall->told, 0, memory_order_relaxed);
    atomic_store_explicit(&wall->delay, 0, memory_order_relaxed);
    atomic_store_explicit(&wall->sampled, false, memory_order_relaxed);
}

/* Time off CPU until `now`, of a thread that has used `cpu` and was delayed for `delay`. 0 where
 * the clocks disagree. Context: any. Async-signal-safe: yes. */
static inline uint64_t wall_off_nano(const struct wall_time *wall, uint64_t now, uint64_t cpu,
                                     uint64_t delay) {
    const uint64_t spent = (cpu > wall->cpu_before ? cpu - wall->cpu_before : 0) +
                           (delay > wall->delay_before ? delay - wall->delay_before : 0);
    const uint64_t lived = now > wall->begun ? now - wall->begun : 0;
    return wall->begun && lived > spent ? lived - spent : 0;
}

/* Takes what is off CPU up to `off` and was not told. 0: nothing, or the thread has ended.
 * Context: any. Async-signal-safe: yes. */
static inline uint64_t wall_take(struct wall_time *wall, uint64_t off) {
    uint64_t told = atomic_load_explicit(&wall->told, memory_order_relaxed);
    while (told < off) /* never, if it is WALL_ENDED */
        if (atomic_compare_exchange_weak(&wall->told, &told, off))
            return off - told;
    return 0;
}

/* The same for good. Context: the thread itself. */
static inline uint64_t wall_take_rest(struct wall_time *wall, uint64_t off) {
    const uint64_t told = atomic_exchange(&wall->told, WALL_ENDED);
    return told < off ? off - told : 0;
}

/* What was taken found no room: it is for the next sample. Context: the helper. */
static inline void wall_give_back(struct wall_time *wall, uint64_t taken) {
    uint64_t told = atomic_load_explicit(&wall->told, memory_order_relaxed);
    while (told != WALL_ENDED && told >= taken)
        if (atomic_compare_exchange_weak(&wall->told, &told, told - taken))
            return;
}

#endif
