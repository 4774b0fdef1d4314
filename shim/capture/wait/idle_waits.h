/* Whether a thread waits for work, and hardly does anything else: then a view may hide it.
 *
 * It does if one wait, of a kind in which threads wait for work (wait_kinds.def), has had more than
 * 95 % of its time: of the last minute, or since it began. What is older counts less and less: all
 * is halved each minute. Two waits are remembered, since there cannot be two such.
 * Units: nanoseconds. Context: the helper.
 */
#ifndef OTELPROF_IDLE_WAITS_H
#define OTELPROF_IDLE_WAITS_H

#include "wait_detail.h"

#include <stdbool.h>
#include <stdint.h>

struct idle_waits {
    uint64_t since; /* CLOCK_MONOTONIC: where its time begins; 0: nothing is known */
    struct {
        uint64_t place;
        uint64_t nano;
    } waits[2];
};

/* The thread, which is there since `born`, has waited for `nano` more in a wait of that kind and
 * stack until `now`. true: that is what it does. */
bool idle_waits_add(struct idle_waits *idle, enum wait_kind kind, uint64_t stack, uint64_t nano,
                    uint64_t born, uint64_t now);

/* The same, without more. */
bool idle_waits_is(const struct idle_waits *idle, enum wait_kind kind, uint64_t stack,
                   uint64_t now);

#endif
