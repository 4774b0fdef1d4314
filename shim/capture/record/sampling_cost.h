/* What sampling costs the program's threads: OTEL_PROFILER_MAX_OVERHEAD is kept by it.
 *
 * Each thread counts what it does for us, by kind, in memory of its own. Some of it, about one in
 * so many and never by a pattern that the program could share, it measures by its own CPU clock:
 * other threads that have the processor meanwhile are not in it. Cost is the count times the mean
 * price. What a thread cannot see, the delivery of a signal and the way back, is added as a
 * constant. What costs the same at any rate, such as malloc's countdown, is not in it.
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

/* What is done, and so has a price. */
enum sampling_work {
    WORK_CPU_SAMPLE,
    WORK_ALLOCATION, /* that was sampled, */
    WORK_FREE,       /* and the end of one, or of one that the filter takes for one */
    WORK_CONTENTION,
    SAMPLING_WORKS
};

/* Of one thread and one kind; written by that thread alone. */
struct sampling_count {
    _Atomic uint64_t done;
    _Atomic uint64_t measured; /* of those */
    _Atomic uint64_t nano;     /* that the measured ones took */
    _Atomic uint64_t objects;  /* estimates, unbiased: of all that might have been sampled, */
    _Atomic uint64_t amount;   /* and of its bytes, or nanoseconds of delay */
    uint64_t next;             /* the one that is measured next; 0: not drawn yet */
};

/* --- on a thread of the program. Async-signal-safe: yes; errno is preserved --- */

static inline void sampling_add(_Atomic uint64_t *to, uint64_t number) {
    const uint64_t before = atomic_load_explicit(to, memory_order_relaxed);
    atomic_store_explicit(to, before + number, memory_order_relaxed);
}

/* One has been measured. */
static inline void sampling_measured(struct sampling_count *count, uint64_t nano) {
    sampling_add(&count->measured, 1);
    sampling_add(&count->nano, nano);
}

/* A piece of work begins. What it returns goes to sampling_end(); mostly 0: not measured. */
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

/* What the sampled one stands for. */
static inline void sampling_weigh(struct sampling_count *count, double objects, double amount) {
    sampling_add(&count->objects, (uint64_t)(objects + 0.5));
    sampling_add(&count->amount, (uint64_t)(amount + 0.5));
}

/* --- the helper's --- */

struct sampling_costs {
    pid_t pid;         /* whose; another's are forgotten */
    double clock_nano; /* of one look at a thread's CPU clock */
    struct {
        uint64_t done; /* at the last look, and so on */
        uint64_t measured;
        uint64_t nano;
        double price; /* mean of late, nanoseconds */
        double spent;
    } of[SAMPLING_WORKS];
};

struct thread_table;

/* Totals since the start of the process. Context: the helper. */
void sampling_costs_look(struct sampling_costs *costs, const struct thread_table *threads,
                         pid_t pid, struct sampling_cost now[static SAMPLINGS]);

#endif
