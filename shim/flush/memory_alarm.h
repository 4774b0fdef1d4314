/* An export before memory runs out, where the heap's peak is profiled: the kernel ends a process
 * that passes its limit without a word, and with it goes the peak that one wants to know.
 *
 * Once a second it is looked how near a limit is (memory_limit.h). A process that is near makes one
 * export; one that is not far, and is held up for memory, does, too. The next comes after it has
 * grown by 5 % more, or has fallen by 5 % and has risen again, and not within ten seconds; where
 * one comes right after such a pause, the next is twice as long, up to five minutes. So a process
 * that lives at its limit goes on nearly as one that does not. Where there is no limit it is looked
 * each ten seconds, as one may be set. Context of all: flush.
 */
#ifndef OTELPROF_MEMORY_ALARM_H
#define OTELPROF_MEMORY_ALARM_H

#include "harvest.h"
#include "memory_limit.h"

#include <stdbool.h>
#include <stdint.h>

struct memory_alarm {
    const struct capture_api *api;
    bool wants_export;   /* until it is made: who makes it says so */
    uint64_t next;       /* when it is looked next: CLOCK_MONOTONIC, ns; UINT64_MAX: never */
    double told;         /* the nearness at the last alarm; 0: it has fallen since */
    uint64_t not_before; /* the next alarm: the same clock */
    uint64_t pause;      /* that was the last one; ns */
    uint64_t looked;     /* when `last` was read */
    struct memory_limit last;
};

/* Looks if OTEL_PROFILER_TYPES has `heap_peak`. */
struct memory_alarm memory_alarm_open(const struct capture_api *api);

/* Looks, if it is due. */
void memory_alarm_look(struct memory_alarm *alarm);

/* The decision alone, of a look at `now` that saw `limit`. true: an export is wanted. */
bool memory_alarm_follow(struct memory_alarm *alarm, const struct memory_limit *limit,
                         uint64_t now);

#endif
