/* Exports before memory runs out, if the heap's peak is profiled: the kernel kills a process that
 * exceeds its limit without notice, and the peak that matters most would be lost.
 *
 * The alarm polls once a second how near a memory limit is (memory_limit.h). A process that is near
 * its limit makes one export; so does a process that is not far from its limit and is held up for
 * memory. The next export follows after usage has grown by another 5 %, or has fallen by 5 % and
 * risen again, but not within ten seconds. If an alarm comes right after such a pause, the next
 * pause is twice as long, up to five minutes: so a process that runs at its limit is hardly
 * disturbed. Without a limit the alarm polls every ten seconds, because a limit may be set later.
 * Context of all: flush.
 */
#ifndef OTELPROF_MEMORY_ALARM_H
#define OTELPROF_MEMORY_ALARM_H

#include "harvest.h"
#include "memory_limit.h"

#include <stdbool.h>
#include <stdint.h>

struct memory_alarm {
    const struct capture_api *api;
    bool wants_export;     /* the export loop clears it */
    uint64_t next;         /* time of the next poll: CLOCK_MONOTONIC, ns; UINT64_MAX: never */
    double alarm_nearness; /* nearness at the last alarm; 0: none, or usage has fallen since */
    uint64_t not_before;   /* earliest time of the next alarm: CLOCK_MONOTONIC */
    uint64_t pause;        /* length of the last pause; ns */
    uint64_t polled_at;    /* time when `last` was read */
    struct memory_limit last;
};

/* Opens the alarm, which polls only if OTEL_PROFILER_TYPES has `heap_peak`. */
struct memory_alarm memory_alarm_open(const struct capture_api *api);

/* Polls if a poll is due. */
void memory_alarm_poll(struct memory_alarm *alarm);

/* Decides as memory_alarm_poll() does, for a poll at `now` that has read `limit`. Returns true if
 * an export is wanted. */
bool memory_alarm_follow(struct memory_alarm *alarm, const struct memory_limit *limit,
                         uint64_t now);

#endif
