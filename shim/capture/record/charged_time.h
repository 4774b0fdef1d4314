/* The CPU time of a thread that samples account for: what it has used, without what it used while
 * CPU time was not sampled.
 *
 * One word says which: what is left out so far, while time is charged; and while it is not, what
 * was charged until then, with the highest bit set. So who reads it on one thread while another
 * changes it reads one or the other. The units are nanoseconds of the thread's CPU clock.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CHARGED_TIME_H
#define OTELPROF_CHARGED_TIME_H

#include "thread_table.h"

#include <stdatomic.h>
#include <stdint.h>

#define CHARGE_PAUSED (UINT64_C(1) << 63)

/* What of `used`, the thread's CPU clock, is charged; 0 where the clock could not be read. */
static inline uint64_t charged_nano(const struct thread_state *thread, uint64_t used) {
    const uint64_t charge = atomic_load_explicit(&thread->charge, memory_order_relaxed);
    if (charge & CHARGE_PAUSED)
        return charge & ~CHARGE_PAUSED;
    return used > charge ? used - charge : 0;
}

/* What is used from now on is not charged. */
static inline void charge_pause(struct thread_state *thread, uint64_t used) {
    uint64_t charge = atomic_load(&thread->charge);
    if (!(charge & CHARGE_PAUSED) && used >= charge)
        (void)atomic_compare_exchange_strong(&thread->charge, &charge,
                                             CHARGE_PAUSED | (used - charge));
}

/* And from now on it is again. */
static inline void charge_resume(struct thread_state *thread, uint64_t used) {
    uint64_t charge = atomic_load(&thread->charge);
    const uint64_t charged = charge & ~CHARGE_PAUSED;
    if ((charge & CHARGE_PAUSED) && used >= charged)
        (void)atomic_compare_exchange_strong(&thread->charge, &charge, used - charged);
}

#endif
