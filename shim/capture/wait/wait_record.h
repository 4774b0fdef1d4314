/* Records the time that threads spend off CPU, stopped or delayed, as the helper has observed it.
 * Context: the helper. */
#ifndef OTELPROF_WAIT_RECORD_H
#define OTELPROF_WAIT_RECORD_H

#include "wait_sampler.h"

/* Records `nano` of the account's wait. Returns false, and counts a drop, if there is no memory;
 * returns true without a record if the profile type is off. The other functions that return bool
 * do the same. */
bool wait_record_off_cpu(struct wait_sampler *waits, struct thread_state *thread,
                         struct wait_account *account, uint64_t nano);

/* Returns a sample under the account's stack, without kind, wait and values. The sample refers to
 * the account. */
struct sample wait_record_account_sample(const struct wait_account *account);

/* Records `nano` in which the whole process was stopped, under the stack of the account's wait, or
 * under the stack in which the thread was last seen running. */
bool wait_record_stopped(struct wait_sampler *waits, struct thread_state *thread,
                         const struct wait_account *account, uint64_t nano);

/* Records `nano` off CPU that was in no observed wait. */
bool wait_record_unseen(struct wait_sampler *waits, struct thread_state *thread, uint32_t tid,
                        uint64_t nano);

/* Records `nano` of run-queue delay, under the stack in which the thread was last seen running. */
bool wait_record_delay(struct wait_sampler *waits, struct thread_state *thread, uint32_t tid,
                       uint64_t nano);

#endif
