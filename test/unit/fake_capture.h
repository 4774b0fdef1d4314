/* Replaces the capture side in tests of the flush side: passes on the samples that the test gives,
 * counts drops, keeps the quiesce lock open unless the test closes it, and never sleeps longer than
 * 5 ms at once. */
#ifndef OTELPROF_TEST_FAKE_CAPTURE_H
#define OTELPROF_TEST_FAKE_CAPTURE_H

#include "clock.h"
#include "harvest.h"

#include <time.h>

static struct {
    struct config config;
    unsigned off;       /* types of config.types that are not profiled at present */
    uint64_t off_since; /* when they were turned off; before that, types were off for off_nano */
    uint64_t off_nano;
    uint64_t on_since; /* when types were last turned on */
    struct log log;
    struct origin origin;
    const struct harvest_sample *samples;
    size_t sample_count;
    const struct harvest_module *modules;
    size_t module_count;
    uint64_t dropped[DROP_REASON_COUNT];
    int request; /* the value that wait() returns */
    void *suspended;
    bool lock_closed;
    int lock_depth; /* must be 0 whenever a thread sleeps */
    int answered;
    int slept_in_lock;
    struct settings_values settings; /* the last settings that were requested */
    int settings_refused;            /* the number of requests to refuse */
    uint64_t grown_interval;         /* the interval of allocations; 0: 4096 */
    bool paused;                     /* sampling is paused by the program */
    enum log_level log_level;
    uint32_t exports_wanted;
    uint32_t exports_made;
    int exports_ended[2]; /* counts of exports: failed, delivered */
    struct heap_peak_facts peak;
    struct sampling_cost costs[SAMPLINGS];
    uint64_t helper_nano; /* is added to the helper's CPU time */
} fake;

static void fake_harvest(harvest_visit *visit, void *arg) {
    for (size_t i = 0; i < fake.sample_count; i++)
        visit(arg, &fake.samples[i]);
}

static bool fake_ended_child(struct ended_child *child, harvest_visit *visit, void *arg) {
    (void)child, (void)visit, (void)arg;
    return false;
}

static void fake_child_is_lost(const struct ended_child *child) {
    (void)child;
}

static size_t fake_modules(const struct harvest_module **modules) {
    *modules = fake.modules;
    return fake.module_count;
}

static void fake_dropped(uint64_t counts[DROP_REASON_COUNT]) {
    memcpy(counts, fake.dropped, sizeof fake.dropped);
}

static void fake_count_drop(enum drop_reason reason, uint64_t count) {
    fake.dropped[reason] += count;
}

static uint64_t fake_period(enum profile_period of) {
    return of == CPU_PERIOD ? 10000000 : fake.grown_interval ? fake.grown_interval : 4096;
}

static struct heap_peak_facts fake_heap_peak(void) {
    return fake.peak;
}

static unsigned fake_types(void) {
    return fake.config.types & ~fake.off;
}

static struct sampled_time fake_sampled(enum profile_word type, uint64_t now) {
    const bool off = fake.off >> type & 1;
    const bool configured = fake.config.types >> type & 1;
    return (struct sampled_time){.nano =
                                     configured ? (off ? fake.off_since : now) - fake.off_nano : 0,
                                 .begun = fake.on_since};
}

/* Fills *named for any function, and returns true for function 1 alone: no other has a name. */
static bool fake_name_frame(uint64_t frame, struct named_frame *named) {
    const int position = (int)(frame >> FRAME_POSITION_SHIFT & 0xffffff);
    *named = (struct named_frame){"cpython", "interpreted", "script.py", position + 10, 10};
    return (uint32_t)frame == 1;
}

static bool fake_change_settings(const struct settings_values *wanted) {
    fake.settings = *wanted;
    return fake.settings_refused-- <= 0;
}

static bool fake_is_paused(void) {
    return fake.paused;
}

static void fake_set_log_level(enum log_level level) {
    fake.log_level = level;
}

static uint64_t fake_own_cpu(void) {
    return 4711 + fake.helper_nano;
}

static uint64_t fake_foreign_stack(void) {
    return 0;
}

static void fake_sampling_cost(struct sampling_cost costs[SAMPLINGS]) {
    memcpy(costs, fake.costs, sizeof fake.costs);
}

static int fake_wait(uint64_t deadline) {
    fake.slept_in_lock += fake.lock_depth != 0;
    const uint64_t now = monotonic_nano();
    if (deadline > now) {
        const uint64_t nano = deadline - now < 5000000 ? deadline - now : 5000000;
        nanosleep(&(struct timespec){0, (long)nano}, NULL);
    }
    return fake.request;
}

static uint32_t fake_exports_wanted(void) {
    return fake.exports_wanted;
}

static void fake_exports_made(uint32_t number) {
    fake.exports_made = number;
}

static void fake_export_ended(bool delivered) {
    fake.exports_ended[delivered]++;
}

static bool fake_may_export(void) {
    return true;
}

static bool fake_lock_enter(void) {
    fake.lock_depth++;
    if (fake.lock_closed)
        fake.lock_depth--;
    return !fake.lock_closed;
}

static void fake_give_back(void) {
}

static void fake_lock_leave(void) {
    fake.lock_depth--;
}

static bool fake_lock_is_awaited(void) {
    return false;
}

static void fake_answers(bool answers) {
    fake.answered += answers;
}

static void fake_ready(bool outlive_exit) {
    (void)outlive_exit;
}

static bool fake_guarded(void (*work)(void *arg), void *arg, const struct work_budget *budget) {
    (void)budget;
    work(arg);
    return true;
}

static bool fake_is_timed(void) {
    return true;
}

static void fake_allow_leaving(const struct code_range *ranges, size_t count) {
    (void)ranges, (void)count;
}

static void fake_bound_memory(uint64_t room) {
    (void)room;
}

static void fake_warn(void *arg, const char *message) {
    (void)arg;
    (void)message;
}

static struct capture_api fake_capture(const char *const *environment) {
    static char text[4096];
    memset(&fake, 0, sizeof fake);
    config_parse(environment, &fake.config, text, sizeof text, fake_warn, NULL);
    fake.log = (struct log){.level = LOG_NONE, .file = ""};
    return (struct capture_api){
        .config = &fake.config,
        .log = &fake.log,
        .origin = &fake.origin,
        .start_unix_nano = 1000,
        .variables = environment,
        .harvest = {.visit = fake_harvest,
                    .ended_child = fake_ended_child,
                    .modules = fake_modules,
                    .name_frame = fake_name_frame,
                    .period = fake_period,
                    .heap_peak = fake_heap_peak,
                    .types = fake_types,
                    .sampled = fake_sampled},
        .lifecycle = {.libraries_ready = fake_ready,
                      .change_settings = fake_change_settings,
                      .is_paused = fake_is_paused,
                      .set_log_level = fake_set_log_level,
                      .exports_wanted = fake_exports_wanted,
                      .exports_made = fake_exports_made,
                      .may_export = fake_may_export,
                      .endpoint_responded = fake_answers,
                      .suspended = &fake.suspended},
        .wait = {.until = fake_wait},
        .guard = {.lock_enter = fake_lock_enter,
                  .lock_leave = fake_lock_leave,
                  .lock_is_awaited = fake_lock_is_awaited,
                  .run = fake_guarded,
                  .is_timed = fake_is_timed,
                  .allow_leaving = fake_allow_leaving,
                  .give_back_memory = fake_give_back,
                  .bound_memory = fake_bound_memory},
        .counters = {.child_is_lost = fake_child_is_lost,
                     .dropped = fake_dropped,
                     .count_drop = fake_count_drop,
                     .export_ended = fake_export_ended,
                     .helper_cpu_nano = fake_own_cpu,
                     .foreign_stack_nano = fake_foreign_stack,
                     .short_child_nano = fake_foreign_stack,
                     .sampling_cost = fake_sampling_cost},
    };
}

#endif
