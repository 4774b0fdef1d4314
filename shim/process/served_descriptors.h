/* Serves descriptors, such as a socket that takes requests, while the helper waits.
 *
 * The helper waits on a futex, so that a request of the program's threads (its end, a fork) reaches
 * it at once. No system call waits for both a futex and descriptors. If the helper slept in poll,
 * the requesting thread would need something that ends the poll: a descriptor, which the program
 * must not have (the helper's table is its own), or a signal, whose number would be taken from the
 * program. So the helper sleeps on the futex in rounds, and polls the descriptors, without waiting,
 * between two rounds. After a descriptor was ready a round lasts 1 ms; each further round is twice
 * as long, up to 100 ms. So a first request may wait 100 ms, but the program never waits. If no
 * descriptor is served, there are no rounds, and no call is made.
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
    struct pollfd ready[SERVED_MOST]; /* the result of served_poll() */
    uint32_t count;
    uint32_t ready_count;
    uint64_t round_ms; /* length of the next round; 0: a request may follow soon */
};

/* Removes all descriptors; a new thread calls it, because the thread has its own table of
 * descriptors. */
void served_clear(struct served_descriptors *served);

/* Serves `descriptor` when poll(2) reports one of `events`; the caller keeps owning it. Returns
 * false if the table is full, or if the descriptor is served already. */
bool served_add(struct served_descriptors *served, const struct served_descriptor *added);

/* Stops serving `descriptor`. The caller may close it afterwards. */
void served_remove(struct served_descriptors *served, int descriptor);

/* Returns when a sleep must end for the next poll (CLOCK_MONOTONIC, ns); UINT64_MAX: nothing is
 * served. The helper calls it before each sleep. */
uint64_t served_next_poll(struct served_descriptors *served);

/* Returns true if a descriptor is ready. The helper calls it after a sleep; it makes no system call
 * if nothing is served. */
bool served_poll(struct served_descriptors *served);

/* Serves the descriptors that the last poll found ready. A descriptor that is no longer open is
 * served a last time, with POLLNVAL, and removed. */
void served_serve(struct served_descriptors *served);

#endif
