/* When to export: each process at a moment of its own within the interval, and always at that one.
 *
 * Processes that are started together, or that waited together for a receiver, must not report
 * together for ever. So each draws a phase, uniformly over the whole interval, and exports at
 * phase, phase + interval, phase + 2 intervals, whatever becomes late on the way: a deadline that
 * was missed is left out and moves none of those after it. The first export is at most one interval
 * after the start. Where the phase had passed before the exporter was ready, the first comes at a
 * random moment of what is left of that interval instead, so that those who loaded late together do
 * not report together either.
 *
 * A process whose end nobody sees (unseen_end.h) loses what it did since its last export. Until
 * that is little beside its age it exports more often: at once, and whenever it has become older by
 * a quarter, so that an end costs a fifth of its profile at most. All times: CLOCK_MONOTONIC,
 * nanoseconds. Context: flush.
 */
#ifndef OTELPROF_SCHEDULE_H
#define OTELPROF_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct schedule {
    uint64_t interval; /* > 0 */
    uint64_t start;
    bool ends_unseen;
    uint64_t phase; /* the first deadline of the regular ones */
    uint64_t next;  /* when the next export is due */
};

/* `start`: of the profile; `now` >= start; `random`: a state for random_next(). */
struct schedule schedule_begin(uint64_t start, uint64_t now, uint64_t interval, bool ends_unseen,
                               uint64_t *random);

/* After an export that was done at `now`. */
void schedule_advance(struct schedule *schedule, uint64_t now);

#endif
