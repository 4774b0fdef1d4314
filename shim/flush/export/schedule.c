#include "schedule.h"

#include "clock.h"
#include "poisson.h"

enum { GROWTH = 4 };
/* Bounds the rate of a process younger than 0.4 s. */
static const uint64_t least_apart_nano = 100 * NANO_PER_MILLI;

struct schedule schedule_begin(uint64_t start, uint64_t now, uint64_t interval, bool ends_unseen,
                               uint64_t *random) {
    const uint64_t end = start + interval;
    struct schedule s = {.interval = interval,
                         .start = start,
                         .ends_unseen = ends_unseen,
                         .phase = start + 1 + random_next(random) % interval};
    s.next = s.phase;
    if (s.next < now)
        s.next = now < end ? now + random_next(random) % (end - now + 1) : now;
    if (ends_unseen)
        s.next = now;
    return s;
}

void schedule_advance(struct schedule *s, uint64_t now) {
    s->next = s->phase;
    if (now >= s->phase)
        s->next += ((now - s->phase) / s->interval + 1) * s->interval;
    const uint64_t apart = (now - s->start) / GROWTH;
    const uint64_t when_older = now + (apart > least_apart_nano ? apart : least_apart_nano);
    if (s->ends_unseen && when_older < s->next)
        s->next = when_older;
}
