/* Counts the cost of sampling on the program's threads, so that OTEL_PROFILER_MAX_OVERHEAD can be
 * kept.
 *
 * Each thread counts its work for the profiler, by kind, in memory of its own. It measures some
 * pieces of work with its own CPU clock, which excludes other threads that have the processor
 * meanwhile. Measured pieces are chosen at random, so that no pattern of the program coincides with
 * them. The cost is the count times the mean price. Work that a thread cannot see, the delivery of
 * a signal and the return, is added as a constant. Work that costs the same at any rate, such as
 * malloc's countdown, is not included.
 */
#ifndef OTELPROF_SAMPLING_COST_H
#define OTELPROF_SAMPLING_COST_H

#include "clock.h"
#include "harvest.h"
#include "poisson.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Lists the kinds of work, each with its price. */
enum sampling_work {
    WORK_CPU_SAMPLE,
    WORK_ALLOCATION, /* a sampled allocation */
    /* the free of a sampled allocation, or of an object that the filter takes for a sampled one */
    WORK_FREE,
    WORK_CONTENTION,
    SAMPLING_WORKS
};

/* Counts the work of one thread, of one kind; only that thread writes the counters. */
struct sampling_count {
    _Atomic uint64_t done;
    _Atomic uint64_t measured; /* number of measured pieces of work */
    _Atomic uint64_t nano;     /* nanoseconds that the measured pieces took */
    /* unbiased estimate of the number of all objects that might have been sampled */
    _Atomic uint64_t objects;
    /* unbiased estimate of the bytes of these objects, or of nanoseconds of delay */
    _Atomic uint64_t amount;
    uint64_t next; /* the piece of work to measure next; 0: not drawn yet */
};

/* --- on a thread of the program. Async-signal-safe: yes; errno is preserved --- */

static inline void sampling_add(_Atomic uint64_t *to, uint64_t number) {
    const uint64_t before = atomic_load_explicit(to, memory_order_relaxed);
    atomic_store_explicit(to, before + number, memory_order_relaxed);
}

/* Counts a measured piece of work. */
static inline void sampling_measured(struct sampling_count *count, uint64_t nano) {
    sampling_add(&count->measured, 1);
    sampling_add(&count->nano, nano);
}

/* Begins a piece of work. Returns the time to pass to sampling_end(); 0, mostly: this piece is not
 * measured. */
uint64_t sampling_begin_measured(struct sampling_count *count, enum sampling_work work,
                                 uint64_t *random);
static inline uint64_t sampling_begin(struct sampling_count *count, enum sampling_work work,
                                      uint64_t *random) {
    sampling_add(&count->done, 1);
    const uint64_t done = atomic_load_explicit(&count->done, memory_order_relaxed);
    return done < count->next ? 0 : sampling_begin_measured(count, work, random);
}

static inline void sampling_end(struct sampling_count *count, uint64_t begun) {
    if (begun)
        sampling_measured(count, thread_cpu_nano() - begun);
}

/* Adds the number of objects and the amount that a sample represents. */
static inline void sampling_weigh(struct sampling_count *count, double objects, double amount) {
    sampling_add(&count->objects, (uint64_t)(objects + 0.5));
    sampling_add(&count->amount, (uint64_t)(amount + 0.5));
}

/* --- on the helper --- */

struct sampling_costs {
    pid_t pid;         /* the process of these costs; costs of a parent are dropped */
    double clock_nano; /* price of one reading of a thread's CPU clock */
    struct {
        uint64_t done; /* totals at the last update, like the next two members */
        uint64_t measured;
        uint64_t nano;
        double price; /* mean of recent prices, in nanoseconds */
        double spent;
    } of[SAMPLING_WORKS];
};

struct thread_table;

/* Updates the prices and sums, and sets `now` to the totals since the start of process `pid`.
 * Context: the helper. */
void sampling_costs_update(struct sampling_costs *costs, const struct thread_table *threads,
                           pid_t pid, struct sampling_cost now[static SAMPLINGS]);

#endif
