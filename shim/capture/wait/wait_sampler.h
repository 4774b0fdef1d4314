/* Samples the waits of each thread, on the helper: the off-CPU time.
 *
 * The amount is exact: the kernel's clocks give the time that a thread spent neither on a processor
 * nor on its run queue (record/wall_time.h). A poll only decides under which stack the time is
 * shown. A thread that is found waiting gets the time off CPU since its last sample, and while it
 * stays in the same wait, that wait gets the time from poll to poll. Polls come at random moments,
 * so stacks are found in proportion to their time, as CPU samples find code. A wait appears in the
 * profile before it ends. No thread is woken, and no hook reads a clock for this.
 *
 * A poll has a budget (wait_budget.h). If the budget does not suffice for all threads, each is
 * observed with the same probability, even a thread in a known wait, so that none is preferred.
 *
 * Context: the helper, unless a function says otherwise.
 */
#ifndef OTELPROF_WAIT_SAMPLER_H
#define OTELPROF_WAIT_SAMPLER_H

#include "blocked_stack.h"
#include "config.h"
#include "kernel_thread.h"
#include "last_stacks.h"
#include "log.h"
#include "process_stop.h"
#include "record/record.h"
#include "wait_account.h"
#include "wait_budget.h"

#include <stdbool.h>
#include <stdint.h>

struct wait_sampler {
    const struct recorder *recorder;
    const struct log *log;
    unsigned types;         /* PROFILE_* bits that need waits; 0: the sampler does nothing */
    unsigned on;            /* the types that the present settings enable */
    bool paused;            /* none of the types is on */
    uint32_t settings;      /* version of the settings that the sampler follows */
    uint64_t next_poll_ns;  /* CLOCK_MONOTONIC, ns */
    uint64_t pass_start_ns; /* CLOCK_MONOTONIC: when the present pass over the threads began */
    bool began_lock_wait;   /* in this pass: the holder may have been observed after the waiter */
    uint32_t next_thread;   /* first thread of the next poll */
    uint64_t random;
    struct wait_budget budget;
    struct sample_table table; /* the helper's own records, in chunks of the threads' pool */
    struct last_stacks stacks; /* stacks in which threads were last seen running */
    struct wait_accounts *accounts;
    struct kernel_view kernel;
    struct process_stop stop;
    struct blocked_stack room; /* memory for the walk of the present poll */
};

/* Lists the values of wait_slots_on, which the hooks read: the hooks call wait_slot_begin() if a
 * type that needs a slot is on. */
enum {
    WAIT_SLOTS_OFF,
    WAIT_SLOTS_ON,
    WAIT_SLOTS_UNPOLLED, /* on, in a forked child that was never polled: it may have no helper */
};
extern _Atomic uint8_t wait_slots_on;

/* Prepares the sampler. Context: calm, at start. */
void wait_sampler_start(struct wait_sampler *waits, const struct config *config,
                        const struct recorder *recorder, const struct log *log);

/* Begins the account of a thread that is about to be created. Context: calm. */
void wait_sampler_expect(const struct wait_sampler *waits, struct thread_state *thread);

/* Begins the account of the calling thread, without its time so far. `may_open`: the thread may
 * open a file (sampler_may_open()), to read its run-queue delay so far. Context: at start, or fork
 * handler. */
void wait_sampler_begin_here(const struct wait_sampler *waits, struct thread_state *thread,
                             bool may_open);

/* Records the waits of the calling thread that no poll has seen. Context: the thread itself, calm,
 * profiler_tls.inside set. */
void wait_sampler_end_thread(const struct wait_sampler *waits, struct thread_state *thread);

/* Returns the time of the next poll (CLOCK_MONOTONIC, ns). 0: at once, because the settings have
 * changed; UINT64_MAX: never, or not before the settings change. */
uint64_t wait_sampler_next_poll(const struct wait_sampler *waits);

/* Call these right before the helper sleeps, and right after it, so that the profiler can record a
 * stop of the whole process. `until`: when the sleep should have ended. */
void wait_sampler_before_sleep(struct wait_sampler *waits);
void wait_sampler_after_sleep(struct wait_sampler *waits, uint64_t until);

/* Polls the threads, if a poll is due. */
void wait_sampler_poll(struct wait_sampler *waits);

/* Reconciles every thread's account up to now, and visits the records since the last harvest. If
 * `is_last`, also records the time that no poll has seen. */
void wait_sampler_harvest(struct wait_sampler *waits, bool is_last,
                          void (*visit)(void *arg, const struct sample *sample), void *arg);

/* Returns the wait in which a thread was found last, if the thread is still in it. Its frames,
 * detail and `wait_start_ns` are valid until the next poll. NULL: the thread was not found
 * waiting. */
const struct wait_account *wait_sampler_current_wait(const struct wait_sampler *waits,
                                                     const struct thread_state *thread);

/* Observes one thread now, whatever the budget. Returns the same as wait_sampler_current_wait(). */
const struct wait_account *wait_sampler_observe(struct wait_sampler *waits,
                                                struct thread_state *thread);

/* Forgets everything about the parent's threads. Context: fork handler. */
void wait_sampler_after_fork(struct wait_sampler *waits);

#endif
