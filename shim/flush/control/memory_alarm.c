#include "memory_alarm.h"

#include "clock.h"

/* Sets the factors of the nearness at an alarm. The next alarm is due at GROWN times that nearness.
 * Below FALLEN times that nearness, of which at most 1 counts, the alarm is reset. */
#define GROWN  1.05
#define FALLEN 0.95

enum {
    STALLED_PART = 10
}; /* the group is held up if it has stalled for this fraction of the time between two polls */
static const uint64_t poll_nano = NANO_PER_SECOND;
static const uint64_t poll_unlimited_nano = UINT64_C(10) * NANO_PER_SECOND;
static const uint64_t first_pause = UINT64_C(10) * NANO_PER_SECOND;
static const uint64_t longest_pause = UINT64_C(300) * NANO_PER_SECOND;

struct memory_alarm memory_alarm_open(const struct capture_api *api) {
    const bool polls = api->config->types & PROFILE_HEAP_PEAK;
    return (struct memory_alarm){.api = api, .next = polls ? 0 : UINT64_MAX, .pause = first_pause};
}

/* --- the decision --- */

/* Returns true if the group has reached a limit since the last poll, or its tasks have waited for
 * memory for a tenth of the time. The group must not have been far from its limit at that poll. */
static bool is_held_up(const struct memory_alarm *alarm, const struct memory_limit *limit,
                       uint64_t now) {
    const struct memory_limit *const last = &alarm->last;
    if (!limit->name || last->name != limit->name || last->nearness < MEMORY_NOT_FAR)
        return false;
    const uint64_t apart = now - alarm->polled_at;
    return limit->hits > last->hits ||
           (limit->stalled > last->stalled &&
            (limit->stalled - last->stalled) * 1000 >= apart / STALLED_PART);
}

static bool alarm_is_due(const struct memory_alarm *alarm, const struct memory_limit *limit,
                         uint64_t now) {
    if (now < alarm->not_before)
        return false;
    if (alarm->alarm_nearness > 0)
        return limit->nearness >= GROWN * alarm->alarm_nearness;
    return limit->nearness >= 1 ||
           (limit->nearness >= MEMORY_NOT_FAR && is_held_up(alarm, limit, now));
}

bool memory_alarm_follow(struct memory_alarm *alarm, const struct memory_limit *limit,
                         uint64_t now) {
    if (limit->nearness < FALLEN * (alarm->alarm_nearness < 1 ? alarm->alarm_nearness : 1))
        alarm->alarm_nearness = 0;
    const bool due = limit->of && alarm_is_due(alarm, limit, now);
    if (due) {
        alarm->alarm_nearness = limit->nearness;
        const uint64_t twice = 2 * alarm->pause < longest_pause ? 2 * alarm->pause : longest_pause;
        const bool is_soon = alarm->not_before && now - alarm->not_before < alarm->pause;
        alarm->pause = is_soon ? twice : first_pause;
        alarm->not_before = now + alarm->pause;
    }
    alarm->last = *limit;
    alarm->polled_at = now;
    return due;
}

/* --- polling --- */

void memory_alarm_poll(struct memory_alarm *alarm) {
    const uint64_t now = monotonic_nano();
    if (now < alarm->next)
        return;
    alarm->next = now + poll_nano;
    if (!(alarm->api->harvest.types() & PROFILE_HEAP_PEAK))
        return; /* nothing is sampled, so the state of the heap is unknown */
    const struct memory_limit limit = memory_limit_read();
    if (!limit.of)
        alarm->next = now + poll_unlimited_nano;
    if (!memory_alarm_follow(alarm, &limit, now))
        return;
    alarm->wants_export = true;
    log_debug(alarm->api->log,
              "%llu of %llu bytes are in use that %s allows; the heap's peak is exported early",
              (unsigned long long)limit.used, (unsigned long long)limit.limit, limit.of);
}
