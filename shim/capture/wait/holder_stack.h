/* Where the thread that holds a lock was last seen: a part of what is known of the wait for it.
 *
 * Best is the wait that the holder is in itself: it keeps the lock meanwhile. Otherwise it is where
 * the holder was last seen running. Both change while the wait goes on, and the holder may, too: so
 * each look asks again. Context: the helper.
 */
#ifndef OTELPROF_HOLDER_STACK_H
#define OTELPROF_HOLDER_STACK_H

#include "wait_sampler.h"

/* A wait for the lock that `slot_kind` and `lock` are of begins: who holds it, and where. */
void holder_stack_begin(const struct wait_sampler *waits, struct wait_account *account,
                        uint32_t slot_kind, uint64_t lock);

/* It goes on: whether another thread has the lock by now, or the holder is elsewhere. */
bool holder_stack_has_moved(const struct wait_sampler *waits, const struct wait_account *account);

/* Says so. Time that is owed must have been recorded before. */
void holder_stack_follow(const struct wait_sampler *waits, struct wait_account *account);

#endif
