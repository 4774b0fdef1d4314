/* Where the thread that holds a lock was last seen: a part of what is known of the wait for it.
 *
 * Best is the wait that the holder is in itself: it keeps the lock meanwhile. It may begin, or be
 * seen, later than the wait for its lock, so it is looked for as long as that lasts; until it is
 * found it is where the holder was last seen running. Context: the helper.
 */
#ifndef OTELPROF_HOLDER_STACK_H
#define OTELPROF_HOLDER_STACK_H

#include "wait_sampler.h"

/* A wait for the lock that `slot_kind` and `lock` are of begins: who holds it, and where. */
void holder_stack_begin(const struct wait_sampler *waits, struct wait_account *account,
                        uint32_t slot_kind, uint64_t lock);

/* It goes on. */
void holder_stack_follow(const struct wait_sampler *waits, struct wait_account *account);

#endif
