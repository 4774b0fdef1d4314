#include "schedule.h"

#include "poisson.h"

struct schedule schedule_begin(uint64_t start, uint64_t now, uint64_t interval, uint64_t *random) {
    const uint64_t end = start + interval;
    struct schedule s = {.interval = interval, .phase = start + 1 + random_next(random) % interval};
    s.next = s.phase;
    if (s.next < now)
        s.next = now < end ? now + random_next(random) % (end - now + 1) : now;
    return s;
}

void schedule_advance(struct schedule *s, uint64_t now) {
    s->next = s->phase;
    if (now >= s->phase)
        s->next += ((now - s->phase) / s->interval + 1) * s->interval;
}
