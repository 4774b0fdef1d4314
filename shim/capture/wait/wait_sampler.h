/* Time off CPU: what each thread waits for, by the helper's looks at it.
 *
 * Context: the helper, unless it says otherwise.
 */
#ifndef OTELPROF_WAIT_SAMPLER_H
#define OTELPROF_WAIT_SAMPLER_H

#include "config.h"
#include "last_stacks.h"
#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>

struct wait_sampler {
    const struct recorder *recorder;
    unsigned types;            /* PROFILE_* bits that need it; 0: it does nothing */
    uint64_t next_look;        /* CLOCK_MONOTONIC, ns */
    struct sample_table table; /* what the helper has recorded, in chunks of the threads' pool */
    struct last_stacks stacks; /* where threads were last seen running */
};

/* Whether parked_begin() is to be called: one of the types that need it is on. Read by the hooks.
 */
extern _Atomic bool parked_on;

/* Context: calm, at start. */
void wait_sampler_start(struct wait_sampler *waits, const struct config *config,
                        const struct recorder *recorder);

/* When to look again; UINT64_MAX: never. */
uint64_t wait_sampler_next_look(const struct wait_sampler *waits);

/* Looks at the threads, if it is time. */
void wait_sampler_look(struct wait_sampler *waits);

/* Settles every thread's account up to now, and visits what was recorded since the last time. */
void wait_sampler_harvest(struct wait_sampler *waits,
                          void (*visit)(void *arg, const struct sample *sample), void *arg);

/* Nothing of the parent's is known. Context: fork handler. */
void wait_sampler_after_fork(struct wait_sampler *waits);

#endif
