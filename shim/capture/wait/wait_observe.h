/* Observes one thread. Context: the helper. */
#ifndef OTELPROF_WAIT_OBSERVE_H
#define OTELPROF_WAIT_OBSERVE_H

#include "wait_sampler.h"

/* Returns the account of the thread that has this slot now. Records the pending time of the slot's
 * former thread first. NULL: the slot has no thread, or there is no account. */
struct wait_account *wait_account_of(struct wait_sampler *waits, struct thread_state *thread);

/* Returns true if the thread may still be in the wait of its account: the slot has not changed, or,
 * without a slot, the CPU clock has not moved. */
bool wait_is_same(const struct thread_state *thread, const struct wait_account *account);

/* Returns true if the CPU clock has moved: then the thread has run since the last observation, and
 * is not in the same wait, even if the slot has not changed. */
bool wait_has_worked(const struct wait_account *account);

/* Returns the price of observing the thread, in nanoseconds. */
uint64_t wait_observe_price(const struct wait_sampler *waits, const struct thread_state *thread,
                            const struct wait_account *account);

/* Adds the time since the last observation to the wait. Must be called only if the wait is the
 * same. */
void wait_continue(struct wait_sampler *waits, struct thread_state *thread,
                   struct wait_account *account, uint64_t now);

/* Records the pending time of the last wait, and begins the wait that the thread is in now, if it
 * is in one. Called if the thread may have left its last wait. */
void wait_observe(struct wait_sampler *waits, struct thread_state *thread,
                  struct wait_account *account);

/* Records the pending time and the run-queue delay of the thread's account. */
void wait_reconcile(struct wait_sampler *waits, struct thread_state *thread,
                    struct wait_account *account);

/* Records, without a stack, the time off CPU until now that is in no sample. */
void wait_record_remainder(struct wait_sampler *waits, struct thread_state *thread,
                           struct wait_account *account);

/* Records up to `nano` of the time off CPU that is in no sample, as time in which the process was
 * stopped. */
void wait_observe_stop(struct wait_sampler *waits, struct thread_state *thread,
                       struct wait_account *account, uint64_t nano);

/* Excludes all time until now from every sample. */
void wait_discard(struct wait_sampler *waits, struct thread_state *thread,
                  struct wait_account *account);

#endif
