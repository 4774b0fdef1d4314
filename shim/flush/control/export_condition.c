#include "export_condition.h"

#include "clock.h"
#include "files/process_memory.h"

struct export_condition export_condition_open(const struct capture_api *api) {
    return (struct export_condition){.api = api,
                                     .bounds = api->config->condition,
                                     .began = true,
                                     .cpu_nano = api->start_cpu_nano,
                                     .holds = true};
}

bool export_condition_holds(struct condition bounds, struct interval_figures figures) {
    if (!condition_is_set(bounds))
        return true;
    if (bounds.cpu_percent && (figures.cpu_percent < 0 || figures.cpu_percent > bounds.cpu_percent))
        return true;
    return bounds.rss_kib && (figures.rss_kib < 0 || figures.rss_kib > bounds.rss_kib);
}

/* Returns the resident memory in KiB; -1 if it cannot be read. */
static double resident_kib(void) {
    struct process_memory memory;
    if (!process_memory_read(&memory))
        return -1;
    return (double)memory.resident / 1024;
}

static struct interval_figures measure_interval(struct export_condition *condition, uint64_t nano) {
    const uint64_t before = condition->cpu_nano;
    const bool knew = condition->began;
    const uint64_t own = condition->api->counters.helper_cpu_nano();
    const uint64_t all = clock_nano(CLOCK_PROCESS_CPUTIME_ID);
    condition->cpu_nano = all > own ? all - own : 0;
    condition->began = true;
    /* 0 instead of a negative difference: one of the two clocks may lag behind the other */
    const uint64_t used = condition->cpu_nano > before ? condition->cpu_nano - before : 0;
    return (struct interval_figures){.cpu_percent = knew ? 100 * (double)used / (double)nano : -1,
                                     .rss_kib = condition->bounds.rss_kib ? resident_kib() : -1};
}

void export_condition_update(struct export_condition *condition, uint64_t nano) {
    condition->holds = true;
    if (condition_is_set(condition->bounds))
        condition->holds =
            export_condition_holds(condition->bounds, measure_interval(condition, nano));
    else
        condition->began = false;
}
