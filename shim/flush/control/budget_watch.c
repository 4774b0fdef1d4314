#include "budget_watch.h"

#include "clock.h"

/* Bounds a stretch from below, because a shorter stretch is not significant: the program may
 * request an export every 100 ms. */
static const uint64_t shortest_nano = UINT64_C(200) * NANO_PER_MILLI;
/* Sets the length of the first stretch if the process's first samples were expensive, so that they
 * count fully. */
static const uint64_t first_nano = UINT64_C(250) * NANO_PER_MILLI;

static void begin_stretch(struct budget_watch *watch, const struct settings_values *in_force) {
    watch->densest = *in_force;
    watch->is_mixed = false;
    watch->begun = monotonic_nano();
    watch->process_nano = clock_nano(CLOCK_PROCESS_CPUTIME_ID);
    watch->helper_nano = watch->api->counters.helper_cpu_nano();
    watch->api->counters.sampling_cost(watch->costs);
    watch->next = UINT64_MAX;
}

static uint64_t all_costs(const struct sampling_cost costs[SAMPLINGS]) {
    uint64_t sum = 0;
    for (int i = 0; i < SAMPLINGS; i++)
        sum += costs[i].cpu_nano;
    return sum;
}

/* Begins the watch. The CPU time that the program used before profiling began, perhaps before an
 * exec, is unknown, and so is the relative cost of the first samples. If these were cheap, the next
 * regular check is enough. */
struct budget_watch budget_watch_open(const struct capture_api *api,
                                      const struct settings_values *in_force) {
    struct budget_watch watch = {.api = api, .budget = budget_open(api->config->max_overhead)};
    begin_stretch(&watch, in_force);
    watch.interval_begun = watch.begun;
    watch.interval_helper_nano = watch.helper_nano;
    watch.started_helper_nano = UINT64_MAX;
    if (watch.budget.limit != BUDGET_NONE && all_costs(watch.costs) > BUDGET_BURST_NANO)
        watch.next = watch.begun + first_nano;
    return watch;
}

/* Adds these rates to the present stretch, which continues. */
static void budget_mix_rates(struct budget_watch *watch, const struct settings_values *in_force) {
    struct settings_values *const densest = &watch->densest;
    if (in_force->cpu_frequency > densest->cpu_frequency)
        densest->cpu_frequency = in_force->cpu_frequency;
    if (in_force->alloc_interval < densest->alloc_interval)
        densest->alloc_interval = in_force->alloc_interval;
    if (in_force->lock_interval < densest->lock_interval)
        densest->lock_interval = in_force->lock_interval;
    watch->is_mixed = true;
}

void budget_watch_begin(struct budget_watch *watch, const struct settings_values *in_force) {
    const bool has_limit = watch->budget.limit != BUDGET_NONE;
    if (has_limit && watch->next != UINT64_MAX && !watch->has_decided) {
        budget_mix_rates(watch, in_force);
        return;
    }
    begin_stretch(watch, in_force);
    if (has_limit && !watch->is_rising)
        watch->next = watch->begun + NANO_PER_SECOND;
    watch->is_rising = false;
    watch->has_decided = false;
}

static uint64_t grown(uint64_t now, uint64_t before) {
    return now > before ? now - before : 0;
}

static uint64_t interval_nano(const struct budget_watch *watch) {
    return watch->api->config->interval_ms * NANO_PER_MILLI;
}

/* Ends an interval. Most of the helper's work is the export, once in an interval. So the helper's
 * share of one interval is applied to all stretches of the next interval. A shorter interval, such
 * as the first one or one that a program or a client ends, would make the helper's start or one
 * export a large share, so it becomes a part of the next interval. */
static void end_interval(struct budget_watch *watch) {
    const uint64_t nano = grown(watch->begun, watch->interval_begun);
    const uint64_t whole = interval_nano(watch);
    if (nano < shortest_nano || nano < whole - whole / 8)
        return;
    watch->helper_share =
        (double)grown(watch->helper_nano, watch->interval_helper_nano) / (double)nano;
    watch->interval_begun = watch->begun;
    watch->interval_helper_nano = watch->helper_nano;
}

/* Returns the processors that the helper uses: its share of the last interval, or, if that is more,
 * its CPU time in the present interval so far, divided by the length of a whole interval. So the
 * exports and windows that clients request count as they come, and not after up to two
 * intervals. */
static double helper_processors(const struct budget_watch *watch) {
    const uint64_t from = watch->started_helper_nano > watch->interval_helper_nano
                              ? watch->started_helper_nano
                              : watch->interval_helper_nano;
    const double spent = (double)grown(watch->helper_nano, from) / (double)interval_nano(watch);
    return spent > watch->helper_share ? spent : watch->helper_share;
}

/* Counts an interval's end. When the first export has been made, records the helper's CPU time
 * until then, which helper_processors() leaves out: the first export finds all names. */
static void count_interval_end(struct budget_watch *watch) {
    enum { FIRST_EXPORT_IS_MADE = 2 };
    if (watch->interval_ends < FIRST_EXPORT_IS_MADE &&
        ++watch->interval_ends == FIRST_EXPORT_IS_MADE)
        watch->started_helper_nano = watch->helper_nano;
}

/* Ends the stretch, returns its measurements, and begins another. */
static struct overhead end_stretch(struct budget_watch *watch,
                                   const struct settings_values *in_force, bool interval_ends) {
    const struct budget_watch before = *watch;
    begin_stretch(watch, in_force);
    /* measures again after a second, because the last rates of a mixed stretch were perhaps in
     * force too briefly */
    if (before.is_mixed)
        watch->next = watch->begun + NANO_PER_SECOND;
    if (interval_ends) {
        count_interval_end(watch);
        end_interval(watch);
    }
    struct overhead seen = {.nano = grown(watch->begun, before.begun)};
    seen.helper_nano = (uint64_t)(helper_processors(watch) * (double)seen.nano);
    for (int i = 0; i < SAMPLINGS; i++)
        seen.of[i] = (struct sampling_cost){
            .cpu_nano = grown(watch->costs[i].cpu_nano, before.costs[i].cpu_nano),
            .samples = grown(watch->costs[i].samples, before.costs[i].samples),
            .objects = grown(watch->costs[i].objects, before.costs[i].objects),
            .amount = grown(watch->costs[i].amount, before.costs[i].amount)};
    seen.program_nano = grown(grown(watch->process_nano, before.process_nano),
                              grown(watch->helper_nano, before.helper_nano) + all_costs(seen.of));
    return seen;
}

/* Returns the share that a cost has of the program's time, in hundredths of a percent. */
static unsigned share(uint64_t cost, uint64_t program) {
    const double share = 10000 * (double)cost / (double)(program ? program : 1);
    return share < 1000000 ? (unsigned)share : 1000000;
}

static void budget_report(const struct budget_watch *watch, const struct overhead *seen,
                          const struct settings_values *set) {
    const struct settings_values now = budget_lower(&watch->budget, set);
    const unsigned sampling = share(all_costs(seen->of), seen->program_nano);
    const unsigned helper = share(seen->helper_nano, seen->program_nano);
    log_debug(
        watch->api->log,
        "sampling took %u.%u%u percent of the program's CPU time and the exporter %u.%u%u; to "
        "keep OTEL_PROFILER_MAX_OVERHEAD, OTEL_PROFILER_CPU_FREQUENCY is %llu now, "
        "OTEL_PROFILER_ALLOC_INTERVAL %llu, OTEL_PROFILER_LOCK_INTERVAL %llu",
        sampling / 100, sampling / 10 % 10, sampling % 10, helper / 100, helper / 10 % 10,
        helper % 10, (unsigned long long)now.cpu_frequency, (unsigned long long)now.alloc_interval,
        (unsigned long long)now.lock_interval);
}

bool budget_watch_poll(struct budget_watch *watch, const struct settings_values *set,
                       const struct settings_values *in_force, bool interval_ends) {
    if (watch->budget.limit == BUDGET_NONE)
        watch->next = UINT64_MAX;
    if (watch->budget.limit == BUDGET_NONE || monotonic_nano() < watch->begun + shortest_nano)
        return false;
    const struct settings_values before = budget_lower(&watch->budget, set);
    const struct settings_values densest = watch->densest;
    const bool was_mixed = watch->is_mixed;
    const struct overhead seen = end_stretch(watch, in_force, interval_ends);
    const enum budget_change change =
        budget_step(&watch->budget, &seen, set, &densest, interval_ends);
    const struct settings_values after = budget_lower(&watch->budget, set);
    if (before.cpu_frequency == after.cpu_frequency &&
        before.alloc_interval == after.alloc_interval &&
        before.lock_interval == after.lock_interval)
        return false;
    watch->is_rising = change == BUDGET_RISES && !was_mixed;
    watch->has_decided = true;
    budget_report(watch, &seen, set);
    return true;
}
