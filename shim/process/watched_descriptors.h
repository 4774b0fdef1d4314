/* Watches descriptors, such as a socket that takes requests, while the helper waits.
 *
 * The helper waits on a futex, so that a request of the program's threads (its end, a fork) reaches
 * it at once. No system call waits for both a futex and descriptors. If the helper slept in poll,
 * the requesting thread would need something that ends the poll: a descriptor, which the program
 * must not have (the helper's table is its own), or a signal, whose number would be taken from the
 * program. So the helper sleeps on the futex in rounds, and polls the descriptors, without waiting,
 * between two rounds. After a descriptor was ready a round lasts 1 ms; each further round is twice
 * as long, up to 100 ms. So a first request may wait 100 ms, but the program never waits. If no
 * descriptor is watched, there are no rounds, and no call is made.
 *
 * Context of all: the helper.
 */
#ifndef OTELPROF_WATCHED_DESCRIPTORS_H
#define OTELPROF_WATCHED_DESCRIPTORS_H

#include "watched_descriptor.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

enum { WATCHED_MOST = 16, WATCHED_FIRST_ROUND_MS = 1, WATCHED_LAST_ROUND_MS = 100 };

struct watched_descriptors {
    struct watched_descriptor all[WATCHED_MOST];
    struct pollfd ready[WATCHED_MOST]; /* the result of watched_poll() */
    uint32_t count;
    uint32_t ready_count;
    uint64_t round_ms; /* length of the next round; 0: a request may follow soon */
};

/* Removes all descriptors; a new thread calls it, because the thread has its own table of
 * descriptors. */
void watched_clear(struct watched_descriptors *watched);

/* Watches `added`: its function is called when poll(2) reports one of its events. The caller keeps
 * owning the descriptor. Returns false if the table is full, or if the descriptor is watched
 * already. */
bool watched_add(struct watched_descriptors *watched, const struct watched_descriptor *added);

/* Stops watching `descriptor`. The caller may close it afterwards. */
void watched_remove(struct watched_descriptors *watched, int descriptor);

/* Returns when a sleep must end for the next poll (CLOCK_MONOTONIC, ns); UINT64_MAX: nothing is
 * watched. The helper calls it before each sleep. */
uint64_t watched_next_poll(struct watched_descriptors *watched);

/* Returns true if a descriptor is ready. The helper calls it after a sleep; it makes no system call
 * if nothing is watched. */
bool watched_poll(struct watched_descriptors *watched);

/* Calls the functions of the descriptors that the last poll found ready. A descriptor that is no
 * longer open is passed a last time, with POLLNVAL, and removed. */
void watched_call_ready(struct watched_descriptors *watched);

#endif
