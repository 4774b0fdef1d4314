/* Counts a thread's charged CPU time: the time that its samples must add up to. The charged time is
 * all CPU time of the thread, except the time used while CPU time was not sampled.
 *
 * One word holds the state. While sampling is on, the word is the sum of the excluded time. While
 * sampling is off, it is the charged time, with the highest bit set. So a thread that reads the
 * word while another changes it gets the old state or the new one. The seven bits below the highest
 * count the threads that have had the slot: so a change that was measured on one thread's clock
 * fails if another thread has the slot by now. The remaining bits, enough for 2.2 years, are
 * nanoseconds of the thread's CPU clock. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CHARGED_TIME_H
#define OTELPROF_CHARGED_TIME_H

#include "thread_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CHARGE_PAUSED (UINT64_C(1) << 63)
#define CHARGE_OWNER  (UINT64_C(1) << 56) /* added to the word when another thread gets the slot */
#define CHARGE_NANO   (CHARGE_OWNER - 1)

/* Resets the state for a thread that gets the slot: none of the thread's time is excluded. Context:
 * thread_table_take(). */
static inline void charge_begin(struct thread_state *thread) {
    const uint64_t owners = atomic_load(&thread->charge) & ~(CHARGE_PAUSED | CHARGE_NANO);
    atomic_store(&thread->charge, (owners + CHARGE_OWNER) & ~CHARGE_PAUSED);
}

/* Returns the charged part of `used`, the thread's CPU clock; 0 if the clock could not be read. */
static inline uint64_t charged_nano(const struct thread_state *thread, uint64_t used) {
    const uint64_t charge = atomic_load_explicit(&thread->charge, memory_order_relaxed);
    const uint64_t nano = charge & CHARGE_NANO;
    if (charge & CHARGE_PAUSED)
        return nano;
    return used > nano ? used - nano : 0;
}

/* Returns the word. A caller that reads the word of another thread must read it before it reads
 * that thread's id. */
static inline uint64_t charge_now(const struct thread_state *thread) {
    return atomic_load(&thread->charge);
}

/* Charges the CPU time from now on (`on`), or excludes it. `used`: the thread's CPU clock. Nothing
 * changes if the state is the wanted one already, if `used` is less than the time in the word (the
 * clock could not be read), or if the word is no longer `before`: another thread has the slot, or
 * the thread has changed the word itself. */
static inline void charge_change(struct thread_state *thread, uint64_t before, uint64_t used,
                                 bool on) {
    const bool is_on = !(before & CHARGE_PAUSED);
    const uint64_t nano = before & CHARGE_NANO;
    const uint64_t owner = before & ~(CHARGE_PAUSED | CHARGE_NANO);
    if (is_on != on && used >= nano)
        (void)atomic_compare_exchange_strong(&thread->charge, &before,
                                             (on ? 0 : CHARGE_PAUSED) | owner | (used - nano));
}

/* Returns true if charge_take() would find time. `before`: the word. */
static inline bool charge_is_due(const struct thread_state *thread, uint64_t before) {
    return (before & CHARGE_PAUSED) && (before & CHARGE_NANO) > thread->last_cpu_nano;
}

/* Takes the charged time that no sample has from a thread whose time is excluded now, and returns
 * it in ns: the caller records the time, and no later sample has it. `before`: the word, read
 * before the thread's id. Returns 0 if there is no such time, if the word has changed, or if the
 * thread is taking a sample. The caller keeps sampling off meanwhile (sampler_begin_move()). */
static inline uint64_t charge_take(struct thread_state *thread, uint64_t before) {
    const uint64_t sampled = thread->last_cpu_nano;
    const uint64_t charged = before & CHARGE_NANO;
    uint64_t taken = (before & ~CHARGE_NANO) | sampled;
    if (!(before & CHARGE_PAUSED) || charged <= sampled ||
        !atomic_compare_exchange_strong(&thread->charge, &before, taken))
        return 0;
    /* pairs with thread_begin_sample(): changes, then checks. A sample that begins later finds the
     * new state, in which no time is due */
    if (!atomic_load(&thread->samples_now) && thread->last_cpu_nano == sampled)
        return charged - sampled;
    (void)atomic_compare_exchange_strong(&thread->charge, &taken, before);
    return 0;
}

/* Change the state as charge_change() does, for the calling thread. */
static inline void charge_pause(struct thread_state *thread, uint64_t used) {
    charge_change(thread, charge_now(thread), used, false);
}
static inline void charge_resume(struct thread_state *thread, uint64_t used) {
    charge_change(thread, charge_now(thread), used, true);
}

#endif
