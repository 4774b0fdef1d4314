/* Schedules exports: each process exports at its own moment within the interval, always the same.
 *
 * Processes that start together, or have waited together for a receiver, must not always report
 * together. So each process draws a phase, uniformly over the whole interval, and exports at phase,
 * phase + interval, phase + 2 intervals, and so on: a missed deadline is skipped, and the following
 * deadlines stay. If the phase has passed before the exporter is ready, the first export comes at a
 * random moment in the rest of that interval, because processes that loaded late together must not
 * report together, either. If the whole interval has passed, the first export comes at once.
 *
 * A process that ends without notice (unseen_end.h) loses its data since the last export. So it
 * exports more often while it is young: at once, and then each time its age has grown by a quarter,
 * but no sooner than 100 ms after the last export. Then an end after the first half second loses at
 * most a fifth of the profile. All times: CLOCK_MONOTONIC, nanoseconds. Context: flush.
 */
#ifndef OTELPROF_SCHEDULE_H
#define OTELPROF_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct schedule {
    uint64_t interval; /* > 0 */
    uint64_t start;
    bool ends_unseen;
    uint64_t phase; /* first regular deadline */
    uint64_t next;  /* time of the next export */
};

/* Begins the schedule. `start`: start of the profile; `now` >= start; `random`: a state for
 * random_next(). */
struct schedule schedule_begin(uint64_t start, uint64_t now, uint64_t interval, bool ends_unseen,
                               uint64_t *random);

/* Plans the next export after one at `now`. */
void schedule_advance(struct schedule *schedule, uint64_t now);

#endif
