/* Limits the cost of a poll to 1/WAIT_SHARE of the time between two polls, for any number of
 * threads.
 *
 * Each poll sums up the cost of observing all its threads. From that sum the next poll derives the
 * probability with which it observes each thread. The price of a new stack is measured.
 */
#ifndef OTELPROF_WAIT_BUDGET_H
#define OTELPROF_WAIT_BUDGET_H

#include "poisson.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    WAIT_SHARE = 300,        /* 1/300: 0.33 % of a processor */
    WAIT_MOST_THREADS = 512, /* number of threads considered in one poll at most */
    WAIT_STACK_NANO = 20000, /* initial price of a new stack */
    WAIT_CLOCK_NANO = 1000,  /* price of reading another thread's clock */
    WAIT_COMPARE_NANO = 100, /* price of checking a slot: one or two cache misses */
    /* a poll may spend so many times may_spend, because all threads may suddenly wait in new
     * places */
    WAIT_OVERDRAFT = 3,
};

struct wait_budget {
    double chance;      /* probability with which this poll observes each thread */
    uint64_t may_spend; /* budget of this poll, nanoseconds */
    uint64_t spent;
    uint64_t wanted;     /* cost of this poll, in nanoseconds, if it observed every thread */
    uint64_t stack_nano; /* mean price of a new stack, in nanoseconds */
};

/* Begins a poll; `period` is the time until the next poll, in ns. */
static inline void wait_budget_begin(struct wait_budget *budget, uint64_t period) {
    const uint64_t before = budget->wanted;
    if (!budget->stack_nano)
        budget->stack_nano = WAIT_STACK_NANO;
    budget->may_spend = period / WAIT_SHARE;
    if (budget->may_spend < budget->stack_nano)
        budget->may_spend = budget->stack_nano;
    budget->chance = before > budget->may_spend ? (double)budget->may_spend / (double)before : 1;
    budget->spent = 0;
    budget->wanted = 0;
}

/* Decides whether a thread is observed, whose observation costs `nano` ns. */
static inline bool wait_budget_allows(struct wait_budget *budget, uint64_t *random, uint64_t nano) {
    budget->wanted += nano;
    if (budget->spent > budget->may_spend * WAIT_OVERDRAFT ||
        (budget->chance < 1 && random_unit(random) > budget->chance))
        return false;
    budget->spent += nano;
    return true;
}

/* Adds the measured price of a new stack to the mean. */
static inline void wait_budget_learn(struct wait_budget *budget, uint64_t nano) {
    budget->stack_nano += nano / 16;
    budget->stack_nano -= budget->stack_nano / 16;
}

#endif
