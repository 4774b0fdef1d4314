/* Implements the capture side of the interface to flush: every function here runs on the helper
 * thread. */
#include "binding/bound_calls.h"
#include "binding/deep_binding.h"
#include "capture.h"
#include "change_settings.h"
#include "clock.h"
#include "cpu/masked_threads.h"
#include "helper_heap/helper_heap.h"
#include "helper_heap/memory_guard.h"
#include "kernel/profiler_memory.h"
#include "kernel/stepped_memory.h"
#include "record/charged_time.h"
#include "record/child_samples.h"
#include "record/list_iterations.h"
#include "record/thread_files.h"
#include "thread_life.h"
#include "wait/holder_names.h"
#include "wait/thread_snapshot.h"

#include <string.h>
#include <sys/auxv.h>

/* --- names of threads --- */

enum { NAMES = 1024 };

/* Caches a thread's name for one harvest, because threads rename themselves. */
struct thread_name {
    uint32_t tid;
    char name[THREAD_NAME_BYTES];
};

struct harvest {
    harvest_visit *visit;
    void *arg;
    struct thread_name *names; /* NAMES entries, indexed by tid % NAMES; NULL: no memory */
};

static const char *harvest_thread_name(const struct harvest *harvest, uint32_t tid) {
    static const char unknown[THREAD_NAME_BYTES] = "";
    if (!harvest->names || tid == 0)
        return unknown;
    struct thread_name *const slot = &harvest->names[tid % NAMES];
    if (slot->tid != tid) {
        slot->tid = tid;
        thread_name_read(tid, slot->name);
        if (!slot->name[0])
            (void)holder_names_read(tid, slot->name);
    }
    return slot->name;
}

static void keep_name(const struct harvest *harvest, const struct sample *record) {
    if (!harvest->names)
        return;
    struct thread_name *const slot = &harvest->names[record->tid % NAMES];
    slot->tid = record->tid;
    memcpy(slot->name, record->frames, THREAD_NAME_BYTES);
    slot->name[THREAD_NAME_BYTES - 1] = 0;
}

/* --- visitors --- */

static void visit_sample(void *arg, const struct sample *sample) {
    const struct harvest *const harvest = arg;
    if (sample->kind == RECORD_THREAD_NAME) {
        keep_name(harvest, sample);
        return;
    }
    char holder[THREAD_NAME_BYTES] =
        ""; /* copied, because two threads may share one slot among the names */
    if (sample->wait)
        memcpy(holder, harvest_thread_name(harvest, sample->wait->holder), sizeof holder);
    struct harvest_sample out = {.kind = (enum sample_kind)sample->kind,
                                 .flags = sample->flags,
                                 .tid = sample->tid,
                                 .thread_name = harvest_thread_name(harvest, sample->tid),
                                 .frames = sample->frames,
                                 .frame_count = sample->frame_count,
                                 .stack_copy = sample->stack_copy,
                                 .interval = sample->interval,
                                 .context = sample->context,
                                 .seen = sample->seen ? *sample->seen : (struct span_seen){0, 0},
                                 .wait = sample->wait,
                                 .holder_name = holder};
    memcpy(out.values, sample->values, sizeof out.values);
    harvest->visit(harvest->arg, &out);
}

static enum heap_age age_of(const struct live_object *object) {
    static const uint32_t limits[] = {10, 60, 600, 3600, 86400};
    if (!capture.config->heap_age)
        return AGE_UNKNOWN;
    const uint32_t seconds = heap_now_seconds(&capture.heap) - object->birth;
    int i = 0;
    while (i < 5 && seconds >= limits[i])
        i++;
    return (enum heap_age)(AGE_10_SECONDS + i);
}

static void visit_live(void *arg, const struct live_object *object) {
    struct harvest *const harvest = arg;
    const struct stored_stack *const stack = stack_store_at(&capture.heap.stacks, object->stack);
    const struct harvest_sample out = {
        .kind = SAMPLE_LIVE,
        .flags = stack->flags,
        .thread_name = "",
        .frames = stack->frames,
        .frame_count = stack->frame_count,
        .values = {[MEASURED_OBJECTS] = object->objects,
                   [MEASURED_BYTES] = object->objects * object->size},
        .age = age_of(object),
        .interval = stack->interval};
    harvest->visit(harvest->arg, &out);
}

static void visit_peak(const struct harvest *harvest, const struct peak_stack *of) {
    const struct stored_stack *const stack = stack_store_at(&capture.heap.stacks, of->stack);
    const struct harvest_sample out = {
        .kind = SAMPLE_HEAP_PEAK,
        .flags = stack->flags,
        .thread_name = "",
        .frames = stack->frames,
        .frame_count = stack->frame_count,
        .values = {[MEASURED_OBJECTS] = of->objects, [MEASURED_BYTES] = (double)of->bytes},
        .interval = stack->interval};
    harvest->visit(harvest->arg, &out);
}

static void visit_heap(struct harvest *harvest) {
    heap_visit(&capture.heap, visit_live, harvest);
    const struct peak_sums *const peak = heap_peak_of(&capture.heap);
    for (uint32_t i = 0; peak && i < peak->count; i++)
        visit_peak(harvest, &peak->stacks[i]);
}

/* --- time that no sample covers --- */

/* Attributes CPU time to the thread's start routine, as for a thread that ends, so that totals
 * hold. */
static void visit_unsampled(const struct harvest *harvest, const struct thread_state *thread,
                            uint32_t tid, uint64_t nano) {
    const uint64_t start = (uintptr_t)thread->start_routine;
    const uint64_t frames[] = {start ? start : getauxval(AT_ENTRY)};
    const struct harvest_sample out = {.kind = SAMPLE_CPU,
                                       .flags = SAMPLE_FLAG_UNSAMPLED,
                                       .tid = tid,
                                       .thread_name = harvest_thread_name(harvest, tid),
                                       .frames = frames,
                                       .frame_count = 1,
                                       .values = {[MEASURED_NANO] = (double)nano},
                                       .interval = modules_interval(&capture.modules)};
    harvest->visit(harvest->arg, &out);
}

/* Returns the thread's id; 0: there is none, or the thread has retired and recorded its remainder
 * itself. */
static uint32_t id_if_live(const struct thread_state *thread) {
    return atomic_load(&thread->retired) ? 0 : atomic_load(&thread->tid);
}

/* Records the CPU time of a live thread since its last sample, at the process's end. Mostly that is
 * less than a period; of a thread that keeps the signal blocked it is all CPU time. */
static void visit_remainder(const struct harvest *harvest, const struct thread_state *thread) {
    const uint32_t tid = id_if_live(thread);
    const uint64_t sampled = thread->last_cpu_nano;
    const uint64_t used = tid ? charged_nano(thread, clock_nano(cpu_clock_of(tid))) : 0;
    if (used > sampled)
        visit_unsampled(harvest, thread, tid, used - sampled);
}

/* Takes the CPU time of a live thread from its last sample until CPU time was turned off, and
 * returns it in ns. Returns 0 if there is none, or if another thread is changing the settings or
 * the signal: then the next harvest takes the time. Begins a change (sampler_begin_move) only if
 * the thread has such time, because changes of the signal wait for its end. */
static uint64_t take_time_before_off(struct thread_state *thread, uint32_t *tid) {
    const uint64_t charge = charge_now(thread);
    *tid = id_if_live(thread);
    if (*tid == 0 || !charge_is_due(thread, charge) || !sampler_begin_move())
        return 0;
    const uint64_t nano = sampler_is_on() ? 0 : charge_take(thread, charge);
    sampler_end_move();
    return nano;
}

/* Records the CPU time of live threads from their last sample until CPU time was turned off. A
 * later interval would not contain it. */
static void visit_time_before_off(const struct harvest *harvest) {
    uint32_t tid;
    if (!sampler.on || sampler_is_on())
        return;
    for (uint32_t i = 0; i < thread_table_count(&capture.threads); i++) {
        struct thread_state *const thread = thread_table_at(&capture.threads, i);
        const uint64_t nano = take_time_before_off(thread, &tid);
        if (nano)
            visit_unsampled(harvest, thread, tid, nano);
    }
}

static void visit_remainders(const struct harvest *harvest) {
    for (uint32_t i = 0; i < thread_table_count(&capture.threads); i++)
        visit_remainder(harvest, thread_table_at(&capture.threads, i));
}

/* --- CPU time of the kernel's threads in the process --- */

static void visit_kernel_worker(void *arg, uint32_t tid, uint64_t nano) {
    const struct harvest *const harvest = arg;
    const struct harvest_sample out = {.kind = SAMPLE_CPU,
                                       .flags = SAMPLE_FLAG_KERNEL | SAMPLE_FLAG_UNSAMPLED,
                                       .tid = tid,
                                       .thread_name = harvest_thread_name(harvest, tid),
                                       .values = {[MEASURED_NANO] = (double)nano},
                                       .interval = modules_interval(&capture.modules)};
    if (sampler_is_on())
        harvest->visit(harvest->arg, &out);
}

/* --- drops --- */

static void count_unknown_threads(void) {
    const uint32_t count =
        unknown_threads_count(&capture.unknown_threads, &capture.threads, capture.pid);
    atomic_store_explicit(&capture.recorder.dropped[DROP_UNKNOWN_THREAD], count,
                          memory_order_relaxed);
    if (count && !capture.logged_dropped[DROP_UNKNOWN_THREAD])
        log_debug(capture.log, "threads were made past our pthread_create (found by dlsym, from "
                               "dlmopen, by clone); nothing of them is profiled");
}

static void read_dropped(uint64_t counts[DROP_REASON_COUNT]) {
    for (int i = 0; i < DROP_REASON_COUNT; i++)
        counts[i] = atomic_load_explicit(&capture.recorder.dropped[i], memory_order_relaxed);
    thread_table_dropped(&capture.threads, counts);
}

static uint64_t foreign_stack_nano(void) {
    return thread_table_samples(&capture.threads).foreign_nano;
}

static uint64_t short_child_nano(void) {
    return atomic_load_explicit(&capture.short_child_nano, memory_order_relaxed);
}

/* Logs one line at debug level for each count that has grown. */
static void report_dropped(const uint64_t counts[DROP_REASON_COUNT]) {
    for (int i = 0; i < DROP_REASON_COUNT; i++) {
        if (counts[i] && counts[i] != capture.logged_dropped[i])
            log_debug(capture.log, "otelprof.dropped.%s: %llu so far",
                      drop_reason_name((enum drop_reason)i), (unsigned long long)counts[i]);
        capture.logged_dropped[i] = counts[i];
    }
}

/* --- children that ended before they had a helper --- */

/* Holds copies of slots until the next harvest, because frames refer to them. */
static struct child_copy child_copies[CHILD_SLOTS];

static bool map_child_copies(void) {
    if (child_copies[0].records)
        return true;
    uint8_t *const memory = profiler_memory_map(CHILD_SLOTS * CHILD_SLOT_BYTES);
    for (size_t i = 0; memory && i < CHILD_SLOTS; i++)
        child_copies[i] = (struct child_copy){memory + i * CHILD_SLOT_BYTES, 0};
    return memory;
}

static void free_child_copies(void) {
    if (!child_copies[0].records)
        return;
    profiler_memory_unmap(child_copies[0].records, CHILD_SLOTS * CHILD_SLOT_BYTES);
    memset(child_copies, 0, sizeof child_copies);
}

static bool harvest_ended_child(struct ended_child *child, harvest_visit *visit, void *arg) {
    struct harvest harvest = {visit, arg, NULL};
    return child_samples_are_there() && map_child_copies() &&
           child_samples_take(child_copies, child, visit_sample, &harvest);
}

static void harvest_scan_objects(void) {
    list_iteration_begin();
    deep_binding_catch_up();
    bound_calls_catch_up();
    context_poll(&capture.contexts, true);
    python_poll(&capture.python);
    list_iteration_end();
}

/* Brings the state up to date that the visits read. The calls depend on their order:
 * 1. modules_pin() precedes all other calls that use objects: samples are reported in this
 *    snapshot's intervals. If objects are gone, their rules are forgotten before any use.
 * 2. heap_maintain() flips the stack store before visit_heap() reads it.
 * 3. sampler_check_signal() and harvest_scan_objects() find handlers and objects that no hook saw;
 *    the visits name frames by the state that they leave.
 * 4. capture_sweep_threads() precedes count_unknown_threads(), which compares our number of threads
 *    with the kernel's, and the visits of the snapshot and of the kernel's workers, which expect
 *    swept threads.
 */
static void harvest_maintain(void) {
    bool unloaded;
    child_samples_release();
    free_child_copies();
    (void)modules_pin(&capture.modules, &unloaded);
    if (unloaded)
        rule_cache_invalidate(&capture.rules);
    heap_maintain(&capture.heap);
    sampler_check_signal();
    harvest_scan_objects();
    capture_sweep_threads(UINT32_MAX);
    count_unknown_threads();
}

/* Passes all samples to the visitor, and empties the tables that held them. The order, continued:
 * 5. last_stacks_keep() precedes thread_table_harvest(), which empties the tables it reads.
 * 6. thread_snapshot_visit() follows wait_sampler_harvest(), which brings every thread's account up
 *    to date, without a poll in between.
 * 7. visit_time_before_off() and visit_remainders() follow thread_table_harvest() and report only
 *    time that is in no sample. The first precedes the second: it marks its time as reported.
 * 8. The names are unmapped after the last visitor that uses them; modules_close_interval() follows
 *    all visits, so that objects that came and went until then are known.
 */
static void harvest_visit_all(harvest_visit *visit, void *arg) {
    const size_t bytes = whole_pages(sizeof(struct thread_name) * NAMES);
    struct harvest harvest = {visit, arg, profiler_memory_map(bytes)};
    if (capture.waits.types)
        last_stacks_keep(&capture.waits.stacks, &capture.threads);
    thread_table_harvest(&capture.threads, visit_sample, &harvest);
    wait_sampler_harvest(&capture.waits, atomic_load(&capture.last_harvest), visit_sample,
                         &harvest);
    thread_snapshot_visit(&capture.waits, visit_sample, &harvest);
    kernel_workers_visit(&capture.kernel_workers, &capture.threads, capture.pid,
                         visit_kernel_worker, &harvest);
    masked_threads_poll();
    visit_time_before_off(&harvest);
    if (atomic_load(&capture.last_harvest) && sampler.on)
        visit_remainders(&harvest);
    visit_heap(&harvest);
    if (harvest.names)
        profiler_memory_unmap(harvest.names, bytes);
    modules_close_interval(&capture.modules);
}

/* Logs the counts of this harvest. The order, continued:
 * 9. read_dropped() follows masked_threads_poll() and all else that counts drops.
 */
static void harvest_report(void) {
    uint64_t dropped[DROP_REASON_COUNT];
    read_dropped(dropped);
    report_dropped(dropped);
    sampler_report(dropped[DROP_OVERRUN]);
    heap_report(&capture.heap);
    deep_binding_report(capture.log);
    bound_calls_report(capture.log);
}

/* Harvests once. The three functions and the calls in them depend on their order, which they
 * describe as steps 1 to 9. */
static void harvest_all(harvest_visit *visit, void *arg) {
    harvest_maintain();
    harvest_visit_all(visit, arg);
    harvest_report();
}

/* --- the other functions of the interface --- */

static size_t list_modules(const struct harvest_module **modules) {
    const struct module_snapshot *const snapshot = modules_of_harvest(&capture.modules);
    *modules = snapshot ? snapshot->modules : NULL;
    return snapshot ? snapshot->count : 0;
}

static bool name_frame(uint64_t frame, struct named_frame *named) {
    if (frame >> FRAME_SOURCE_SHIFT == FRAME_CHILD)
        return child_samples_name(child_copies, frame, named);
    return frame >> FRAME_SOURCE_SHIFT == FRAME_CPYTHON && capture.python.functions &&
           python_function_name(capture.python.functions, frame_function(frame),
                                frame_position(frame), named);
}

static uint64_t period_of(enum profile_period of) {
    switch (of) {
    case CPU_PERIOD:
        return settings_cpu_period_nano(&capture.settings);
    case ALLOC_INTERVAL:
        return heap_interval(&capture.heap);
    case WAIT_PERIOD:
        return settings_wait_period_nano(&capture.settings);
    case LOCK_INTERVAL:
        return settings_lock_interval(&capture.settings);
    case EACH_ONE:
        break;
    }
    return 1;
}

static struct heap_peak_facts heap_peak(void) {
    const struct heap_peak *const peak = &capture.heap.peak;
    return (struct heap_peak_facts){.highest_bytes =
                                        atomic_load_explicit(&peak->highest, memory_order_relaxed),
                                    .unix_nano = peak->kept.unix_nano};
}

static unsigned harvest_types(void) {
    return settings_types(&capture.settings);
}

static struct sampled_time harvest_sampled(enum profile_word type, uint64_t now) {
    return settings_sampled(&capture.settings, type, now);
}

static bool is_paused(void) {
    return atomic_load(&capture.paused);
}

static void sampling_cost(struct sampling_cost costs[SAMPLINGS]) {
    sampling_costs_update(&capture.costs, &capture.threads, capture.pid, costs);
}

static void harvest_count_drop(enum drop_reason reason, uint64_t count) {
    atomic_fetch_add_explicit(&capture.recorder.dropped[reason], count, memory_order_relaxed);
}

void harvest_fill_api(struct capture_api *api) {
    api->config = capture.config;
    api->log = capture.log;
    api->executable = capture.modules.names.executable;
    api->harvest.visit = harvest_all;
    api->harvest.ended_child = harvest_ended_child;
    api->harvest.modules = list_modules;
    api->harvest.name_frame = name_frame;
    api->harvest.period = period_of;
    api->harvest.heap_peak = heap_peak;
    api->harvest.types = harvest_types;
    api->harvest.sampled = harvest_sampled;
    api->lifecycle.change_settings = capture_change_settings;
    api->lifecycle.is_paused = is_paused;
    api->guard.run = memory_guard_run;
    api->guard.is_timed = memory_guard_is_timed;
    api->guard.allow_leaving = memory_guard_allow;
    api->guard.give_back_memory = helper_heap_trim;
    api->guard.bound_memory = stepped_memory_allow;
    api->counters.dropped = read_dropped;
    api->counters.count_drop = harvest_count_drop;
    api->counters.foreign_stack_nano = foreign_stack_nano;
    api->counters.short_child_nano = short_child_nano;
    api->counters.sampling_cost = sampling_cost;
}
