/* Finds the stack in which the holder of a lock was last seen, for the detail of each wait for that
 * lock.
 *
 * If the holder itself is waiting, the stack of that wait is the best, because the holder keeps the
 * lock meanwhile. Otherwise the profiler uses the stack in which the holder was last seen running.
 * Either stack may change during the wait, and so may the holder; therefore each poll checks again.
 * Context: the helper.
 */
#ifndef OTELPROF_HOLDER_STACK_H
#define OTELPROF_HOLDER_STACK_H

#include "wait_sampler.h"

/* Finds the holder and its stack when a wait begins. `slot_kind` and `lock` identify the lock. */
void holder_stack_begin(const struct wait_sampler *waits, struct wait_account *account,
                        uint32_t slot_kind, uint64_t lock);

/* Finds the stack of the same holder again. Called for a wait that began in this pass over the
 * threads, before its time is recorded: the helper may have observed the holder after the waiter.
 */
void holder_stack_find_again(const struct wait_sampler *waits, struct wait_account *account);

/* Returns true if, since the last check of this wait, the lock has another holder, or the holder is
 * in another wait than before. */
bool holder_stack_has_moved(const struct wait_sampler *waits, const struct wait_account *account);

/* Updates the holder and its stack. The caller must have recorded the pending time before. */
void holder_stack_follow(const struct wait_sampler *waits, struct wait_account *account);

#endif
