/* Time off CPU: what each thread waits for, by the helper's looks at it.
 *
 * The amount is exact: what a thread is neither on a processor nor on its queue for is known from
 * the kernel's clocks (record/wall_time.h). A look only says under which stack it was: a thread
 * that is found waiting gets the time off CPU since its last sample, and as long as it is found in
 * the same wait that gets the time from look to look. Looks come at random moments, so the stacks
 * are met in proportion to their time, as CPU samples meet code; and a wait is in the profile while
 * it lasts. Threads are not woken, and no hook reads a clock.
 * A look has a budget (wait_budget.h). Where not all threads can be afforded each is looked at with
 * the same chance, also one that is in a known wait: so none is preferred.
 *
 * Context: the helper, unless it says otherwise.
 */
#ifndef OTELPROF_WAIT_SAMPLER_H
#define OTELPROF_WAIT_SAMPLER_H

#include "config.h"
#include "kernel_thread.h"
#include "last_stacks.h"
#include "log.h"
#include "record/record.h"
#include "standing_stack.h"
#include "wait_account.h"
#include "wait_budget.h"

#include <stdbool.h>
#include <stdint.h>

struct wait_sampler {
    const struct recorder *recorder;
    const struct log *log;
    unsigned types;       /* PROFILE_* bits that need it; 0: it does nothing */
    unsigned on;          /* those of the present settings */
    bool paused;          /* none of them are */
    uint32_t settings;    /* the version that it follows */
    uint64_t next_look;   /* CLOCK_MONOTONIC, ns */
    uint32_t next_thread; /* where the next look begins */
    uint64_t random;
    struct wait_budget budget;
    struct sample_table table; /* what the helper has recorded, in chunks of the threads' pool */
    struct last_stacks stacks; /* where threads were last seen running */
    struct wait_accounts *accounts;
    struct kernel_view kernel;
    struct standing_stack room; /* for the walk of the present look */
};

/* Whether parked_begin() is to be called: one of the types that need it is on. Read by the hooks.
 */
enum {
    PARKED_OFF,
    PARKED_ON,
    PARKED_ALONE, /* on, in a forked child that nobody has looked at yet: it may have no helper */
};
extern _Atomic uint8_t parked_on;

/* Context: calm, at start. */
void wait_sampler_start(struct wait_sampler *waits, const struct config *config,
                        const struct recorder *recorder, const struct log *log);

/* A thread is about to be created: its account begins. Context: calm. */
void wait_sampler_expect(const struct wait_sampler *waits, struct thread_state *thread);

/* The calling thread's account begins; it has lived before. Context: at start, or fork handler. */
void wait_sampler_begin_here(const struct wait_sampler *waits, struct thread_state *thread);

/* What the calling thread has waited for, and nobody has seen, is recorded. Context: the thread
 * itself, calm, own_tls.inside set. */
void wait_sampler_end_thread(const struct wait_sampler *waits, struct thread_state *thread);

/* When to look again; UINT64_MAX: not before the settings change. */
uint64_t wait_sampler_next_look(const struct wait_sampler *waits);

/* Looks at the threads, if it is time. */
void wait_sampler_look(struct wait_sampler *waits);

/* Settles every thread's account up to now, and visits what was recorded since the last time;
 * `is_last`: what no look has met is recorded, too. */
void wait_sampler_harvest(struct wait_sampler *waits, bool is_last,
                          void (*visit)(void *arg, const struct sample *sample), void *arg);

/* The wait that a thread was found in last, and is in still. Its frames, detail
 * and `since` are valid until the next look. NULL: it was not found waiting. */
const struct wait_account *wait_sampler_wait_of(const struct wait_sampler *waits,
                                                const struct thread_state *thread);

/* Looks at one thread now, whatever the budget. As wait_sampler_wait_of(). */
const struct wait_account *wait_sampler_look_at(struct wait_sampler *waits,
                                                struct thread_state *thread);

/* Nothing of the parent's is known. Context: fork handler. */
void wait_sampler_after_fork(struct wait_sampler *waits);

#endif
