/* Recording what the helper has found out of a thread's time. Context: the helper. */
#ifndef OTELPROF_WAIT_RECORD_H
#define OTELPROF_WAIT_RECORD_H

#include "wait_sampler.h"

/* `nano` of the account's wait. false: no memory, and it is counted. */
bool wait_record_off_cpu(struct wait_sampler *waits, struct thread_state *thread,
                         struct wait_account *account, uint64_t nano);

/* `nano` off CPU of which no look has seen what they were for. */
bool wait_record_unseen(struct wait_sampler *waits, struct thread_state *thread, uint32_t tid,
                        uint64_t nano);

/* `nano` of run-queue delay, under the stack that it was last seen running in. */
bool wait_record_delay(struct wait_sampler *waits, struct thread_state *thread, uint32_t tid,
                       uint64_t nano);

#endif
