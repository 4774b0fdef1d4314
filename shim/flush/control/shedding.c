#include "shedding.h"

#include "clock.h"

enum { CALM_POLLS = 5 };
static const uint64_t poll_nano = NANO_PER_SECOND;

struct shedding shedding_open(const struct capture_api *api) {
    return (struct shedding){.api = api, .next = UINT64_MAX};
}

/* --- the decision --- */

static void shedding_count(struct shedding *shedding) {
    const uint64_t now = monotonic_nano();
    if (shedding_sheds(shedding))
        shedding->shed_nano += now - shedding->since;
    shedding->since = now;
}

static void shedding_turn(struct shedding *shedding, bool on) {
    shedding_count(shedding);
    shedding->is_on = on;
    shedding->calm = 0;
}

void shedding_idle(struct shedding *shedding, bool is_idle) {
    shedding_count(shedding);
    shedding->is_idle = is_idle;
}

bool shedding_sheds(const struct shedding *shedding) {
    return shedding->is_on && !shedding->is_idle;
}

bool shedding_follow(struct shedding *shedding, double percent) {
    const double threshold = (double)shedding->threshold;
    const bool before = shedding->is_on;
    shedding->calm = percent < 0.9 * threshold ? shedding->calm + 1 : 0;
    if (!before && percent > threshold)
        shedding_turn(shedding, true);
    else if (before && shedding->calm == CALM_POLLS)
        shedding_turn(shedding, false);
    return shedding->is_on != before;
}

uint64_t shedding_nano(const struct shedding *shedding) {
    return shedding->shed_nano +
           (shedding_sheds(shedding) ? monotonic_nano() - shedding->since : 0);
}

/* --- polling --- */

static void shedding_report(const struct shedding *shedding, double percent) {
    if (shedding->is_on)
        log_debug(shedding->api->log,
                  "OTEL_PROFILER_CPU_THRESHOLD: %u percent busy; nothing is sampled",
                  (unsigned)percent);
    else
        log_debug(shedding->api->log,
                  "OTEL_PROFILER_CPU_THRESHOLD: sampling goes on, after %llu ms in all without",
                  (unsigned long long)(shedding->shed_nano / NANO_PER_MILLI));
}

static void shedding_record_reading(struct shedding *shedding, bool seen) {
    if (!seen && !shedding->is_blind)
        log_debug(shedding->api->log, "OTEL_PROFILER_CPU_THRESHOLD: how busy the machine is cannot "
                                      "be read; it has no effect");
    shedding->is_blind = !seen;
}

void shedding_limit(struct shedding *shedding, uint64_t threshold) {
    const bool began = threshold && !shedding->threshold;
    shedding->threshold = threshold;
    if (!threshold && shedding->is_on)
        shedding_turn(shedding, false);
    if (began)
        shedding_record_reading(shedding, load_read(&shedding->last));
    if (began)
        shedding->next = monotonic_nano() + poll_nano;
    if (!threshold)
        shedding->next = UINT64_MAX;
}

bool shedding_poll(struct shedding *shedding) {
    struct load load;
    if (monotonic_nano() < shedding->next)
        return false;
    shedding->next = monotonic_nano() + poll_nano;
    const bool knew = !shedding->is_blind;
    shedding_record_reading(shedding, load_read(&load));
    const double percent = knew && !shedding->is_blind ? load_percent(&shedding->last, &load) : -1;
    shedding->last = load;
    if (!shedding_follow(shedding, percent))
        return false;
    shedding_report(shedding, percent);
    return true;
}
