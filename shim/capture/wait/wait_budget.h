/* What a look may cost: WAIT_SHARE of the time between two looks, whatever the number of threads.
 *
 * Each look adds up what all its threads would have cost; by that the next one knows with which
 * chance it can look at each. The price of a new stack is measured.
 */
#ifndef OTELPROF_WAIT_BUDGET_H
#define OTELPROF_WAIT_BUDGET_H

#include "poisson.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    WAIT_SHARE = 300,        /* 0.33 % of a processor */
    WAIT_MOST_THREADS = 512, /* that one look considers */
    WAIT_STACK_NANO = 20000, /* of a new stack, at first */
    WAIT_CLOCK_NANO = 1000,  /* of a clock of another thread */
    WAIT_COMPARE_NANO = 100, /* of a slot: a miss of the cache or two */
    WAIT_OVERDRAFT = 3,      /* of what may be spent: where suddenly all wait elsewhere */
};

struct wait_budget {
    double chance;      /* of each thread, in this look */
    uint64_t may_spend; /* nanoseconds */
    uint64_t spent;
    uint64_t wanted;     /* the cost if each thread had been looked at */
    uint64_t stack_nano; /* what a new stack costs, on average */
};

/* A look begins; `period` is the time to the next one. */
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

/* Whether a thread, looking at which costs `nano`, is looked at. */
static inline bool wait_budget_allows(struct wait_budget *budget, uint64_t *random, uint64_t nano) {
    budget->wanted += nano;
    if (budget->spent > budget->may_spend * WAIT_OVERDRAFT ||
        (budget->chance < 1 && random_unit(random) > budget->chance))
        return false;
    budget->spent += nano;
    return true;
}

/* A new stack has cost so much. */
static inline void wait_budget_learn(struct wait_budget *budget, uint64_t nano) {
    budget->stack_nano += nano / 16;
    budget->stack_nano -= budget->stack_nano / 16;
}

#endif
