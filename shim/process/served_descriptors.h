/* Descriptors that the helper serves while it waits: a socket that answers requests, for one.
 *
 * The helper waits on a futex, so that a request of the program's threads (its end, a fork) reaches
 * it at once. No call of the kernel waits for a futex and descriptors. To leave the futex for a
 * poll, who makes a request would need something that ends the poll: a descriptor, which the
 * program must not have (the helper's table is its own); or a signal, whose number would be taken
 * from the program. So the futex is what the helper sleeps on, in rounds, and between two rounds
 * it asks, without waiting, which descriptors are ready. A round lasts 1 ms after something was
 * ready, and each time twice as long as before, up to 100 ms: so long may a first request wait,
 * and never the program. Where nothing is served there are no rounds, and no call is made.
 *
 * Context of all: the helper.
 */
#ifndef OTELPROF_SERVED_DESCRIPTORS_H
#define OTELPROF_SERVED_DESCRIPTORS_H

#include "served_descriptor.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

enum { SERVED_MOST = 16, SERVED_FIRST_ROUND_MS = 1, SERVED_LAST_ROUND_MS = 100 };

struct served_descriptors {
    struct served_descriptor all[SERVED_MOST];
    struct pollfd ready[SERVED_MOST]; /* as served_look() has seen them */
    uint32_t count;
    uint32_t ready_count;
    uint64_t round_ms; /* 0: a request may follow soon */
};

/* None is served: in a new thread, whose table of descriptors is its own. */
void served_clear(struct served_descriptors *served);

/* Serves `descriptor` when poll(2) tells one of `events`; it stays the caller's. false: there is no
 * room, or it is served already. */
bool served_add(struct served_descriptors *served, const struct served_descriptor *added);

/* Serves it no more. It may be closed then. */
void served_remove(struct served_descriptors *served, int descriptor);

/* When a sleep is to end (CLOCK_MONOTONIC, ns) for the next look; UINT64_MAX: nothing is served.
 * Before each sleep. */
uint64_t served_next_look(struct served_descriptors *served);

/* After a sleep: whether a descriptor is ready. Makes no call where nothing is served. */
bool served_look(struct served_descriptors *served);

/* Serves those that were ready then. One that is not open any more is served a last time, with
 * POLLNVAL, and removed. */
void served_serve(struct served_descriptors *served);

#endif
