#include "control.h"

#include "budget_watch.h"
#include "clock.h"
#include "control_file.h"
#include "export_condition.h"
#include "settable.h"
#include "shedding.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_RECORDINGS = 16 };
/* Sets the delays between retries of a change that capture has refused. The cause usually ends
 * soon, or never (change_settings.h). */
static const uint64_t first_pause = UINT64_C(50) * NANO_PER_MILLI;
static const uint64_t longest_pause = NANO_PER_SECOND;

struct recording {
    uint32_t number; /* number of the recording; 0: the entry is free */
    struct overlay overlay;
};

struct control {
    const struct capture_api *api;
    struct control_file file;
    struct overlay requests;
    struct recording recordings[MOST_RECORDINGS];
    uint32_t last_number;
    struct shedding shedding;
    struct export_condition condition;
    uint64_t max_overhead; /* value that was decided from all sources */
    struct budget_watch watch;
    /* values that were decided from all sources, before the budget lowers rates */
    struct settings_values set;
    struct settings_values wanted;
    struct settings_values in_force;
    bool waits;     /* capture has not accepted `wanted` yet */
    uint64_t retry; /* time of the next attempt, CLOCK_MONOTONIC, ns */
    uint64_t pause; /* delay that follows that attempt, ns */
};

/* --- the decision --- */

static struct settable_values control_decide(const struct control *control) {
    const struct overlay *overlays[MOST_RECORDINGS];
    size_t count = 0;
    const struct config *const config = control->api->config;
    struct settable_values values = settable_configured(config);
    if (*control->api->log->file && !config->log_level_set)
        values.log_level = LOG_DEBUG; /* the default if a log file is configured */
    overlay_lay(&values, &control->file.overlay);
    overlay_lay(&values, &control->requests);
    for (size_t i = 0; i < MOST_RECORDINGS; i++)
        if (control->recordings[i].number)
            overlays[count++] = &control->recordings[i].overlay;
    overlay_refine(&values, overlays, count);
    return values;
}

static bool are_equal(const struct settings_values *a, const struct settings_values *b) {
    return a->on == b->on && a->shed == b->shed && a->types == b->types &&
           a->cpu_frequency == b->cpu_frequency && a->alloc_interval == b->alloc_interval &&
           a->wait_frequency == b->wait_frequency && a->lock_interval == b->lock_interval &&
           a->max_stack_depth == b->max_stack_depth && a->span_times == b->span_times;
}

/* --- applying it --- */

static void control_apply(struct control *control) {
    const uint64_t now = monotonic_nano();
    if (!control->waits || now < control->retry)
        return;
    control->waits = !control->api->lifecycle.change_settings(&control->wanted);
    if (!control->waits) {
        control->in_force = control->wanted;
        budget_watch_begin(&control->watch, &control->in_force);
    }
    control->retry = now + control->pause;
    control->pause = control->pause < longest_pause / 2 ? 2 * control->pause : longest_pause;
}

static void keep_within_budget(struct control *control) {
    const struct settings_values wanted = budget_lower(&control->watch.budget, &control->set);
    if (are_equal(&wanted, &control->wanted))
        return;
    control->wanted = wanted;
    control->waits = true;
    control->retry = 0;
    control->pause = first_pause;
}

/* Decides again after the file, the requests, the recordings or the load have changed. */
static void decide_again(struct control *control) {
    const struct settable_values values = control_decide(control);
    struct settings_values settings = settable_settings(&values);
    shedding_limit(&control->shedding, values.cpu_threshold);
    settings.shed = control->shedding.is_on; /* shedding has priority over recordings */
    control->condition.bounds = values.condition;
    control->set = settings_within(&settings, control->api->config);
    shedding_idle(&control->shedding, !control->set.on || !control->set.types);
    control->max_overhead = values.max_overhead;
    budget_limit(&control->watch.budget, values.max_overhead);
    if (values.log_level != control->api->log->level)
        control->api->lifecycle.set_log_level(values.log_level);
    keep_within_budget(control);
}

/* Runs each poll that is due. */
static void control_poll_due(struct control *control, bool interval_ends) {
    const uint64_t now = monotonic_nano();
    const bool file = now >= control->file.next && control_file_poll(&control->file);
    const bool load = shedding_poll(&control->shedding);
    if (file || load)
        decide_again(control);
    if (!control->waits && (interval_ends || now >= control->watch.next) &&
        budget_watch_poll(&control->watch, &control->set, &control->in_force, interval_ends))
        keep_within_budget(control);
    control_apply(control);
}

/* Returns true if capture may use settings other than the configured ones, because this process may
 * change settings, or because its parent's budget had lowered rates before the fork. */
static bool may_differ(const struct capture_api *api, const struct settings_values *first) {
    const struct config *const config = api->config;
    return *config->config_file || *config->control_file || *config->listen ||
           config->cpu_threshold ||
           api->harvest.period(CPU_PERIOD) > NANO_PER_SECOND / first->cpu_frequency ||
           api->harvest.period(ALLOC_INTERVAL) > first->alloc_interval ||
           api->harvest.period(LOCK_INTERVAL) > first->lock_interval;
}

struct control *control_open(const struct capture_api *api) {
    struct control *const control = calloc(1, sizeof *control);
    if (!control)
        return NULL;
    const struct settings_values configured = settings_configured(api->config);
    const struct settings_values first = settings_within(&configured, api->config);
    *control = (struct control){.api = api,
                                .file = control_file_open(api),
                                .shedding = shedding_open(api),
                                .condition = export_condition_open(api),
                                .max_overhead = api->config->max_overhead,
                                .watch = budget_watch_open(api, &first),
                                .set = first,
                                .wanted = first,
                                .in_force = first,
                                .waits = may_differ(api, &first),
                                .pause = first_pause};
    if (*api->config->control_file)
        (void)control_file_poll(&control->file);
    if (control->waits)
        decide_again(control); /* also sets the log level */
    control_apply(control);
    return control;
}

void control_close(struct control *control) {
    free(control);
}

void control_poll(struct control *control, uint64_t nano) {
    control_poll_due(control, true);
    export_condition_update(&control->condition, nano);
}

uint64_t control_next_poll(const struct control *control) {
    const uint64_t next_poll = earlier(control->file.next, control->shedding.next);
    return earlier(next_poll, control->waits ? control->retry : control->watch.next);
}

void control_poll_again(struct control *control) {
    control_poll_due(control, false);
}

/* --- requests --- */

struct reading {
    char *problem;
    bool wrong;
};

/* Reports the first error only. */
static void report_first_error(void *arg, unsigned line, const char *what) {
    struct reading *const reading = arg;
    if (!reading->wrong)
        snprintf(reading->problem, CONTROL_PROBLEM, "line %u: %s; nothing changes", line, what);
    reading->wrong = true;
}

static bool read_overlay(const struct control *control, struct overlay *overlay, const char *text,
                         size_t size, char *problem) {
    struct reading reading = {.problem = problem};
    struct overlay read = *overlay;
    overlay_read(&read, text, size, control->api->config, report_first_error, &reading);
    if (!reading.wrong)
        *overlay = read;
    return !reading.wrong;
}

bool control_set(struct control *control, const char *text, size_t size,
                 char problem[static CONTROL_PROBLEM]) {
    if (!read_overlay(control, &control->requests, text, size, problem))
        return false;
    decide_again(control);
    control_apply(control);
    return true;
}

bool control_check(const struct control *control, const char *text, size_t size,
                   char problem[static CONTROL_PROBLEM]) {
    struct overlay overlay = {.has = 0};
    return read_overlay(control, &overlay, text, size, problem);
}

static struct recording *find_recording(struct control *control, uint32_t number) {
    for (size_t i = 0; i < MOST_RECORDINGS; i++)
        if (control->recordings[i].number == number)
            return &control->recordings[i];
    return NULL;
}

/* Returns a number that is not in use. */
static uint32_t next_recording_number(struct control *control) {
    do
        control->last_number++;
    while (control->last_number == 0 || find_recording(control, control->last_number));
    return control->last_number;
}

uint32_t control_record(struct control *control, const char *text, size_t size,
                        char problem[static CONTROL_PROBLEM]) {
    struct overlay overlay = {.has = 0};
    struct recording *const recording = find_recording(control, 0);
    if (!recording) {
        snprintf(problem, CONTROL_PROBLEM,
                 "%d recordings are under way, and more are not possible; nothing changes",
                 MOST_RECORDINGS);
        return 0;
    }
    if (!read_overlay(control, &overlay, text, size, problem))
        return 0;
    *recording = (struct recording){next_recording_number(control), overlay};
    decide_again(control);
    control_apply(control);
    return recording->number;
}

void control_record_end(struct control *control, uint32_t number) {
    struct recording *const recording = number ? find_recording(control, number) : NULL;
    if (!recording)
        return;
    recording->number = 0;
    decide_again(control);
    control_apply(control);
}

/* --- the settings in force --- */

/* Returns the values in force. They may differ from the decided values: the heap profiler may have
 * lengthened the allocation interval, and the program may have stopped profiling by an API call. */
static struct settable_values in_force(const struct control *control) {
    const struct settings_values *const applied = &control->in_force;
    const bool is_on = applied->on && !applied->shed && !control->api->lifecycle.is_paused();
    const uint64_t grown = control->api->harvest.period(ALLOC_INTERVAL);
    const bool has_grown = grown > applied->alloc_interval;
    return (struct settable_values){.start = is_on ? START_ON : START_OFF,
                                    .types = applied->types,
                                    .cpu_frequency = applied->cpu_frequency,
                                    .alloc_interval = has_grown ? grown : applied->alloc_interval,
                                    .wait_frequency = applied->wait_frequency,
                                    .lock_interval = applied->lock_interval,
                                    .max_overhead = control->max_overhead,
                                    .max_stack_depth = applied->max_stack_depth,
                                    .log_level = control->api->log->level,
                                    .cpu_threshold = control->shedding.threshold,
                                    .condition = control->condition.bounds};
}

void control_list(const struct control *control, control_visit *visit, void *arg) {
    const struct settable_values values = in_force(control);
    for (enum settable i = 0; i < SETTABLES; i++) {
        char text[SETTABLE_VALUE_BYTES];
        settable_write(&values, i, text);
        visit(arg, settable_name(i), text);
    }
}

const char *control_why_off(const struct control *control) {
    if (!control->set.on)
        return NULL;
    if (control->set.shed)
        return "processors are busier than OTEL_PROFILER_CPU_THRESHOLD";
    if (control->api->lifecycle.is_paused())
        return "the program has called otelprof_stop(), and not otelprof_start() since";
    return control->in_force.on ? NULL
                                : "a thread of the program is changing its signals; the change is "
                                  "tried again within a second";
}

struct settings_values control_in_force(const struct control *control) {
    return control->in_force;
}

bool control_exports(const struct control *control) {
    return control->condition.holds;
}

uint64_t control_span_bound(const struct control *control) {
    return control->condition.bounds.span_milli * UINT64_C(1000000);
}

bool control_sheds(const struct control *control) {
    return shedding_sheds(&control->shedding);
}

uint64_t control_shed_nano(const struct control *control) {
    return shedding_nano(&control->shedding);
}

bool control_is_lowered(const struct control *control) {
    const struct settings_values *const applied = &control->in_force;
    return applied->cpu_frequency < control->set.cpu_frequency ||
           applied->alloc_interval > control->set.alloc_interval ||
           applied->lock_interval > control->set.lock_interval;
}
