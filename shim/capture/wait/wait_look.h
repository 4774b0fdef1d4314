/* One thread, as the helper finds it. Context: the helper. */
#ifndef OTELPROF_WAIT_LOOK_H
#define OTELPROF_WAIT_LOOK_H

#include "wait_sampler.h"

/* The account of the thread that is in this slot now; what is owed to the one before is recorded.
 * NULL: no thread is, or no account is kept. */
struct wait_account *wait_account_of(struct wait_sampler *waits, struct thread_state *thread);

/* Whether it may be in the wait of its account still: its slot has not changed, or its clock has
 * not moved. */
bool wait_is_same(const struct thread_state *thread, const struct wait_account *account);

/* It is in no wait that has lasted since it was looked at last, whatever its slot says: its clock
 * has moved. */
bool wait_has_worked(const struct wait_account *account);

/* What looking at it will cost, nanoseconds. */
uint64_t wait_look_price(const struct wait_sampler *waits, const struct thread_state *thread,
                         const struct wait_account *account);

/* It is: the time since the last look is that wait's. */
void wait_go_on(struct wait_sampler *waits, struct thread_state *thread,
                struct wait_account *account, uint64_t now);

/* It is not, or may not be: what is owed to the last wait is recorded, and where the thread waits
 * now gets the rest. */
void wait_look_anew(struct wait_sampler *waits, struct thread_state *thread,
                    struct wait_account *account);

/* What is owed, and the run-queue delay, is recorded. */
void wait_settle(struct wait_sampler *waits, struct thread_state *thread,
                 struct wait_account *account);

/* What is off CPU until now, and was in no sample, is recorded without its stack. */
void wait_tell_rest(struct wait_sampler *waits, struct thread_state *thread,
                    struct wait_account *account);

/* All of its time until now is in no sample, ever. */
void wait_skip(struct wait_sampler *waits, struct thread_state *thread,
               struct wait_account *account);

#endif
