#include "heap.h"

#include "allocator/allocation_path.h"
#include "arch_entry.h"
#include "arch_machine.h"
#include "clock.h"
#include "helper_heap/helper_heap.h"
#include "kernel/profiler_memory.h"
#include "kernel/profiler_time.h"
#include "kernel/signals_blocked.h"
#include "poisson.h"
#include "record/countdown.h"
#include "record/own_work.h"
#include "record/stack_room.h"

#include <errno.h>
#include <string.h>

static void heap_count_drop(struct heap *heap, enum drop_reason reason) {
    record_drop(heap->recorder, reason);
}

static void count_drops(struct heap *heap, enum drop_reason reason, uint64_t count) {
    atomic_fetch_add_explicit(&heap->recorder->dropped[reason], count, memory_order_relaxed);
}

/* --- the interval --- */

size_t heap_first_bytes(const struct config *config) {
    if (!(config->types & PROFILE_HEAP))
        return 0;
    const bool has_peak = config->types & PROFILE_HEAP_PEAK;
    return live_table_bytes(config->heap_max_live) + 2 * STACK_STORE_BYTES +
           ADDRESS_FILTER_ENTRIES + (has_peak ? heap_peak_bytes(config->heap_max_live) : 0);
}

void heap_start(struct heap *heap, const struct config *config, const struct log *log,
                struct recorder *recorder) {
    heap->config = config;
    heap->log = log;
    heap->recorder = recorder;
    heap_set_interval(heap, config->alloc_interval);
    heap->start_nano = clock_nano(CLOCK_MONOTONIC_COARSE);
    heap->tracks_live = (config->types & PROFILE_HEAP) &&
                        live_table_start(&heap->live, config->heap_max_live) &&
                        stack_store_start(&heap->stacks) && allocation_path_has_filter();
    heap->offers = (config->types & PROFILE_ALLOC) | (heap->tracks_live ? PROFILE_HEAP : 0);
    if ((config->types & PROFILE_HEAP) && !heap->tracks_live)
        log_debug(log, "no memory for the table of live objects; the heap is not profiled");
    if (heap->tracks_live && (config->types & PROFILE_HEAP_PEAK) &&
        !heap_peak_start(&heap->peak, config->heap_max_live))
        log_debug(log, "no memory for the heap's peak; it is not profiled");
}

void heap_stop(struct heap *heap) {
    atomic_store(&heap->stopped, true);
}

void heap_after_fork(struct heap *heap) {
    if (address_filter_is_open(&allocation_path.filter)) {
        profiler_memory_reset_in_child(atomic_load(&allocation_path.filter.counters),
                                       ADDRESS_FILTER_ENTRIES);
        helper_heap_keep_in_filter();
    }
    if (!heap->tracks_live)
        return;
    /* clears the flag, because the thread that was subsampling is not in the child */
    atomic_store(&heap->subsampling, false);
    live_table_reset(&heap->live);
    stack_store_reset(&heap->stacks);
    heap_peak_reset(&heap->peak);
}

uint64_t heap_interval(const struct heap *heap) {
    return atomic_load_explicit(&heap->interval, memory_order_relaxed);
}

void heap_set_interval(struct heap *heap, uint64_t interval) {
    atomic_store_explicit(&heap->logged_interval, interval, memory_order_relaxed);
    atomic_store_explicit(&heap->interval, interval, memory_order_relaxed);
}

static unsigned heap_types(const struct heap *heap) {
    return heap->offers ? heap->offers & settings_types(heap->recorder->settings) : 0;
}

bool heap_is_on(const struct heap *heap) {
    return heap_types(heap) != 0;
}

__attribute__((noinline)) static void draw_gap(const struct heap *heap,
                                               struct thread_state *thread) {
    thread->gap_interval = heap_interval(heap);
    countdown_set(thread, heap_is_on(heap) ? poisson_gap(&thread->random, thread->gap_interval)
                                           : COUNTDOWN_NEVER);
}

void heap_draw_gap(const struct heap *heap, struct thread_state *thread) {
    const uint64_t floats = floats_begin();
    draw_gap(heap, thread);
    floats_end(floats);
}

uint32_t heap_now_seconds(const struct heap *heap) {
    return (uint32_t)((clock_nano(CLOCK_MONOTONIC_COARSE) - heap->start_nano) / NANO_PER_SECOND);
}

void heap_report(struct heap *heap) {
    const uint64_t interval = heap_interval(heap);
    if (interval <= atomic_exchange(&heap->logged_interval, interval))
        return;
    log_debug(
        heap->log,
        "more than OTEL_PROFILER_HEAP_MAX_LIVE=%llu sampled objects were live; one sample now "
        "stands for %llu bytes",
        (unsigned long long)heap->config->heap_max_live, (unsigned long long)interval);
}

static uint64_t rounded(double bytes) {
    return (uint64_t)(bytes + 0.5);
}

void heap_resize(struct live_object *object, double size) {
    object->size = size;
    object->bytes = rounded(object->objects * size);
}

/* --- subsampling: too many objects are live --- */

struct subsampling {
    uint64_t interval; /* the new interval */
    uint64_t *random;
    double bytes; /* estimate of all live bytes */
};

static void subsampling_add_bytes(void *arg, const struct live_object *object) {
    struct subsampling *const t = arg;
    t->bytes += object->objects * object->size;
}

/* Decides whether an object stays at the new interval. An object of weight w was sampled with
 * probability 1/w. So it stays with probability p(new interval) / p(old interval), and its weight
 * grows accordingly: the sums remain unbiased. */
static bool keep_at_new_interval(void *arg, struct live_object *object) {
    const struct subsampling *const t = arg;
    const double weight = poisson_weight((uint64_t)(object->size + 0.5), t->interval);
    if (weight <= object->objects)
        return true;
    if (random_unit(t->random) * weight > object->objects)
        return false;
    object->objects = weight;
    object->bytes = rounded(weight * object->size);
    return true;
}

static void uncount_address(void *arg, const struct live_object *object) {
    (void)arg;
    address_filter_change(&allocation_path.filter, (const void *)object->address, -1);
}

/* Doubles the interval, at least, and drops the objects that the new interval would not have
 * sampled. At an interval of (live bytes ÷ n) at most n objects are expected to stay. Takes some 5
 * ms at the default bound, and happens rarely. */
static void heap_subsample(struct heap *heap, struct thread_state *thread) {
    struct subsampling t = {.random = &thread->random};
    uint64_t before = heap_interval(heap);
    live_table_visit(&heap->live, subsampling_add_bytes, &t);
    const double wanted = 2 * t.bytes / (double)heap->config->heap_max_live;
    const uint64_t largest = UINT64_C(1) << 60;
    t.interval = before;
    do
        t.interval *= 2;
    while ((double)t.interval < wanted && t.interval < largest);
    if (t.interval > largest ||
        !atomic_compare_exchange_strong(&heap->interval, &before, t.interval))
        return; /* another thread has set an interval; the next object checks again */
    live_table_retain_if(&heap->live,
                         &(struct live_retainer){keep_at_new_interval, uncount_address, &t});
}

static void heap_keep_within_bound(struct heap *heap, struct thread_state *thread) {
    if (atomic_load_explicit(&heap->live.count, memory_order_relaxed) <=
        heap->config->heap_max_live)
        return;
    /* the exchange and the store below pair with each other: one thread at a time subsamples */
    if (atomic_exchange_explicit(&heap->subsampling, true, memory_order_acquire))
        return;
    heap_subsample(heap, thread);
    atomic_store_explicit(&heap->subsampling, false, memory_order_release);
}

/* --- the stacks of live objects --- */

static bool evacuate_stack(void *arg, struct live_object *object) {
    struct heap *const heap = arg;
    object->stack = stack_store_evacuate(&heap->stacks, object->stack);
    if (object->stack != STACK_NONE)
        return true;
    heap_count_drop(heap, DROP_STACK_STORE_FULL);
    return false;
}

static void evacuate_stacks(void *arg) {
    struct heap *const heap = arg;
    live_table_retain_if(&heap->live,
                         &(struct live_retainer){evacuate_stack, uncount_address, heap});
    count_drops(heap, DROP_STACK_STORE_FULL, heap_peak_evacuate(&heap->peak, &heap->stacks));
}

void heap_maintain(struct heap *heap) {
    if (heap->tracks_live)
        stack_store_flip(&heap->stacks, evacuate_stacks, heap);
}

/* --- the peak --- */

static bool has_peak(const struct heap *heap) {
    return heap->peak.watches && (settings_types(heap->recorder->settings) & PROFILE_HEAP_PEAK);
}

uint64_t heap_next_poll(const struct heap *heap) {
    return has_peak(heap) ? heap_peak_next_poll(&heap->peak) : UINT64_MAX;
}

static void count_left_out(struct heap *heap, bool was_kept) {
    if (was_kept)
        count_drops(heap, DROP_PEAK_FULL, heap->peak.kept.left_out);
}

void heap_poll(struct heap *heap) {
    if (has_peak(heap))
        count_left_out(heap, heap_peak_poll(&heap->peak, &heap->live, monotonic_nano));
}

const struct peak_sums *heap_peak_of(const struct heap *heap) {
    return has_peak(heap) && heap->peak.kept.count ? &heap->peak.kept : NULL;
}

/* --- all live objects --- */

struct visit {
    struct heap_peak *peak; /* NULL: there is no new peak */
    void (*visit)(void *arg, const struct live_object *object);
    void *arg;
};

static void visit_one(void *arg, const struct live_object *object) {
    const struct visit *const v = arg;
    if (v->peak)
        heap_peak_add(v->peak, object);
    v->visit(v->arg, object);
}

void heap_visit(struct heap *heap, void (*visit)(void *arg, const struct live_object *object),
                void *arg) {
    if (!heap->tracks_live || !(settings_types(heap->recorder->settings) & PROFILE_HEAP))
        return;
    const bool is_higher = has_peak(heap) && heap_peak_begin(&heap->peak, &heap->live);
    struct visit v = {is_higher ? &heap->peak : NULL, visit, arg};
    live_table_visit(&heap->live, visit_one, &v);
    if (is_higher)
        count_left_out(heap, heap_peak_end(&heap->peak));
}

/* --- one allocation --- */

/* Increments the filter before inserting: a concurrent subsampling pass may remove the object, and
 * decrement the filter, as soon as it is visible. So the filter never counts fewer objects than the
 * table has. */
static void heap_insert(struct heap *heap, const struct live_object *live) {
    const void *const address = (const void *)live->address;
    bool replaced;
    if (!allocation_path_may_count(address, 1)) {
        heap_count_drop(heap, DROP_LIVE_FULL);
        return;
    }
    address_filter_change(&allocation_path.filter, address, 1);
    const bool inserted = live_table_insert(&heap->live, live, &replaced);
    if (replaced)
        address_filter_change(&allocation_path.filter, address, -1);
    if (inserted) {
        heap_peak_grew(&heap->peak, live_table_bytes_live(&heap->live));
        return;
    }
    address_filter_change(&allocation_path.filter, address, -1);
    heap_count_drop(heap, DROP_LIVE_FULL);
}

static void heap_track(struct heap *heap, struct thread_state *thread, const void *object,
                       uint64_t size, const struct sample *sample) {
    const uint32_t arena = stack_store_enter(&heap->stacks);
    thread->entered_users = &heap->stacks.users[arena];
    const struct live_object live = {
        .address = (uintptr_t)object,
        .objects = sample->values[MEASURED_OBJECTS],
        .size = (double)size,
        .bytes = rounded(sample->values[MEASURED_OBJECTS] * (double)size),
        .stack = stack_store_keep(&heap->stacks, arena, sample->frames, sample->frame_count,
                                  sample->flags, sample->interval),
        .birth = heap->config->heap_age ? heap_now_seconds(heap) : 0};
    if (live.stack == STACK_NONE)
        thread_count_drop(thread, DROP_STACK_STORE_FULL);
    else
        heap_insert(heap, &live);
    thread->entered_users = NULL;
    stack_store_leave(&heap->stacks, arena);
    heap_keep_within_bound(heap, thread);
}

__attribute__((noinline)) static void heap_record(struct heap *heap, struct thread_state *thread,
                                                  const uint64_t registers[REGISTER_COUNT],
                                                  const void *object, uint64_t size) {
    const double weight = poisson_weight(size, thread->gap_interval);
    struct sample sample = {
        .kind = SAMPLE_ALLOC,
        .values = {[MEASURED_OBJECTS] = weight, [MEASURED_BYTES] = weight * (double)size}};
    const unsigned wanted = heap_types(heap);
    sampling_weigh(&thread->costs[WORK_ALLOCATION], weight, weight * (double)size);
    if (wanted & PROFILE_ALLOC) {
        enum unwind_end end;
        record_stack(heap->recorder, thread, registers, (struct stack_range){0, 0}, &sample, &end);
        if (end == UNWIND_EXPRESSION) /* only the helper could finish this stack */
            sample.flags |= SAMPLE_FLAG_TRUNCATED;
    } else
        record_frames(heap->recorder, thread, registers, &sample);
    if (wanted & PROFILE_HEAP)
        heap_track(heap, thread, object, size, &sample);
}

static void heap_record_measured(struct heap *heap, struct thread_state *thread,
                                 const uint64_t registers[REGISTER_COUNT], const void *object,
                                 uint64_t size) {
    struct sampling_count *const cost = &thread->costs[WORK_ALLOCATION];
    if (thread_begin_sample(heap->recorder->threads, thread)) {
        const uint64_t begun = sampling_begin(cost, WORK_ALLOCATION, &thread->random);
        const uint64_t floats = floats_begin();
        heap_record(heap, thread, registers, object, size);
        draw_gap(heap, thread); /* drawn before a handler allocates, or leaves by a jump */
        floats_end(floats);
        sampling_end(cost, begun);
    }
    thread_end_sample(thread);
}

PROFILER_TIME ARCH_ANY_STACK void heap_sample(struct heap *heap, void *object, uint64_t size) {
    struct thread_state *const thread = profiler_tls.thread;
    const int saved = errno;
    signal_mask before;
    uint64_t registers[REGISTER_COUNT];
    REGISTERS_HERE(registers);
    const bool has_room = stack_has_room();
    if (has_room && signals_block(&before)) {
        own_work_begin(thread);
        heap_record_measured(heap, thread, registers, object, size);
        own_work_end();
        signals_restore(&before);
    } else {
        heap_count_drop(heap, has_room ? DROP_BUSY : DROP_STACK_END);
        heap_draw_gap(heap, thread);
    }
    errno = saved;
}

/* Counts the free, but does not measure it: signals are not blocked here, and one that arrives
 * while the clock is read would find the program in a system call of the profiler. A filter of the
 * program may also forbid that call. */
bool heap_forget(struct heap *heap, const void *object, struct live_object *taken) {
    struct thread_state *const thread = profiler_tls.thread;
    const uint32_t epoch = stack_store_epoch(&heap->stacks);
    if (thread && !profiler_tls.inside && !thread_is_wiped(thread))
        sampling_add(&thread->costs[WORK_FREE].done, 1);
    if (!heap->tracks_live || !live_table_remove(&heap->live, (uintptr_t)object, taken))
        return false;
    taken->epoch = epoch;
    address_filter_change(&allocation_path.filter, object, -1);
    return true;
}

/* Drops the object if the arenas have flipped since heap_forget() (stack_store.h). */
PROFILER_TIME void heap_put_back(struct heap *heap, const struct live_object *taken) {
    const int saved = errno;
    signal_mask before;
    const bool is_out = profiler_tls.inside >= OWN_WORK || atomic_load(&heap->stopped);
    /* after heap_stop() the profiler makes no system call here, so it cannot block signals:
     * hooks/sandbox.c */
    if (is_out || !signals_block(&before)) {
        heap_count_drop(heap, DROP_BUSY);
        errno = saved;
        return;
    }
    const uint32_t arena = stack_store_enter(&heap->stacks);
    if (stack_store_arena(taken->stack) == arena &&
        stack_store_epoch(&heap->stacks) == taken->epoch)
        heap_insert(heap, taken);
    else
        heap_count_drop(heap, DROP_BUSY);
    stack_store_leave(&heap->stacks, arena);
    signals_restore(&before);
    errno = saved;
}
