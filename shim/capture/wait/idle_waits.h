/* Detects threads that spend nearly all time waiting for work, so that a view can hide them.
 *
 * A thread is idle if one wait, of a kind in which threads wait for work (wait_kinds.def), has had
 * more than 95 % of its time. Whenever the sums cover more than a minute, they are halved, with the
 * time that they cover, so older time counts less and less.
 * Two waits of a thread are kept; only one can have 95 %. Units: nanoseconds. Context: the helper.
 */
#ifndef OTELPROF_IDLE_WAITS_H
#define OTELPROF_IDLE_WAITS_H

#include "wait_detail.h"

#include <stdbool.h>
#include <stdint.h>

struct idle_waits {
    uint64_t since_ns; /* CLOCK_MONOTONIC: when the sums begin; 0: there are no sums yet */
    struct {
        uint64_t place;
        uint64_t nano;
    } waits[2];
};

/* Adds `nano` of waiting, in a wait of that kind and stack, until `now`. The thread began at
 * `thread_start_ns`. Returns true if the thread is idle in that wait. */
bool idle_waits_add(struct idle_waits *idle, enum wait_kind kind, uint64_t stack, uint64_t nano,
                    uint64_t thread_start_ns, uint64_t now);

/* Returns the same as idle_waits_add(), but adds no time. */
bool idle_waits_is(const struct idle_waits *idle, enum wait_kind kind, uint64_t stack,
                   uint64_t now);

#endif
