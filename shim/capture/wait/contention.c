#include "contention.h"

#include "arch_entry.h"
#include "arch_machine.h"
#include "clock.h"
#include "holder_names.h"
#include "kernel/profiler_time.h"
#include "kernel/signals_blocked.h"
#include "lock_holder.h"
#include "poisson.h"
#include "record/own_work.h"
#include "record/stack_room.h"
#include "symbols/object_symbols.h"
#include "wait_sampler.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* --- the rate --- */

static const uint64_t LONGEST_INTERVAL = 10 * UINT64_C(1000000000);

/* Adapts the bound to the samples so far. The bound never depends on the result of the present
 * draw, so it adds no bias. */
static void contention_adapt_bound(struct contention_rate *rate, uint64_t now) {
    const bool is_over = now - rate->since_ns >= NANO_PER_SECOND;
    if (rate->samples >= CONTENTION_MOST_SAMPLES && !is_over && rate->interval < LONGEST_INTERVAL)
        rate->bound = rate->interval * 2;
    else if (!is_over)
        return;
    else if (rate->samples < CONTENTION_MOST_SAMPLES / 4)
        rate->bound /= 2;
    rate->since_ns = now;
    rate->samples = 0;
}

bool contention_is_sampled(struct thread_state *thread, const struct settings *settings,
                           uint64_t now, uint64_t delay_ns) {
    struct contention_rate *const rate = &thread->contention;
    contention_adapt_bound(rate, now);
    /* The bound outlasts every change of the settings: otherwise frequent pauses, or frequent
     * changes of the interval, would disable the bound. */
    const uint64_t set = settings_lock_interval(settings);
    rate->interval = rate->bound > set ? rate->bound : set;
    if (delay_ns < rate->interval && random_next(&thread->random) % rate->interval >= delay_ns)
        return false;
    rate->samples++;
    return true;
}

double contention_weight(uint64_t interval, uint64_t delay_ns) {
    return delay_ns < interval ? (double)interval / (double)delay_ns : 1;
}

/* --- the clock --- */

static int (*libc_clock_gettime)(clockid_t clock, struct timespec *time);

void contention_start(void) {
    struct symbol symbol = {.name = "clock_gettime"};
    const struct link_map *object = object_symbols_first();
    while (object && !object_symbols_defines(object, "gnu_get_libc_version"))
        object = object->l_next;
    if (object)
        object_symbols_find_all(object, &symbol, 1);
    memcpy(&libc_clock_gettime, &symbol.address, sizeof symbol.address);
}

/* Returns CLOCK_MONOTONIC in ns; errno is preserved. */
static uint64_t now_nano(void) {
    struct timespec now;
    const int saved = errno;
    if (!libc_clock_gettime || libc_clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        errno = saved;
        return monotonic_nano();
    }
    return (uint64_t)now.tv_sec * NANO_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* --- one contention --- */

ARCH_ANY_STACK struct contention contention_begin(const struct recorder *recorder,
                                                  const struct hook_caller *caller, uint32_t what,
                                                  const void *lock) {
    struct contention contention = {.thread = profiler_tls.thread};
    if (!contention.thread || thread_is_wiped(contention.thread) ||
        own_work_goes_on(contention.thread, (uintptr_t)__builtin_frame_address(0)))
        return (struct contention){.thread = NULL};
    contention.has_wait_slot = atomic_load_explicit(&wait_slots_on, memory_order_relaxed);
    if (contention.has_wait_slot)
        wait_slot_begin(&contention.thread->wait_slot, caller, what, (uintptr_t)lock);
    if (!(settings_types(recorder->settings) & PROFILE_LOCK))
        return contention;
    contention.lock = (uintptr_t)lock;
    contention.holder = lock_holder_here(what, lock);
    contention.start_nano = now_nano();
    return contention;
}

__attribute__((noinline)) static void
contention_record_stack(const struct recorder *recorder, const struct contention *contention,
                        const uint64_t registers[REGISTER_COUNT], uint64_t delay_ns) {
    struct thread_state *const thread = contention->thread;
    const double weight = contention_weight(thread->contention.interval, delay_ns);
    const struct wait_detail wait = {
        .kind = WAIT_LOCK, .object = contention->lock, .holder = contention->holder};
    const struct span_seen began = {.first_nano = contention->start_nano};
    struct sample sample = {
        .kind = SAMPLE_LOCK,
        .seen = &began,
        .wait = &wait,
        .values = {[MEASURED_OBJECTS] = weight, [MEASURED_DELAY] = weight * (double)delay_ns}};
    enum unwind_end end;
    sampling_weigh(&thread->costs[WORK_CONTENTION], weight, weight * (double)delay_ns);
    holder_names_want(contention->holder);
    (void)record_stack(recorder, thread, registers, (struct stack_range){0, 0}, &sample, &end);
}

static void contention_record_measured(const struct recorder *recorder,
                                       const struct contention *contention,
                                       const uint64_t registers[REGISTER_COUNT],
                                       uint64_t delay_ns) {
    struct thread_state *const thread = contention->thread;
    struct sampling_count *const cost = &thread->costs[WORK_CONTENTION];
    if (thread_begin_sample(recorder->threads, thread)) {
        const uint64_t begun = sampling_begin(cost, WORK_CONTENTION, &thread->random);
        const uint64_t floats = floats_begin();
        contention_record_stack(recorder, contention, registers, delay_ns);
        floats_end(floats);
        sampling_end(cost, begun);
    }
    thread_end_sample(thread);
}

/* Records a contention in the same way as a sampled allocation: with all signals blocked, so that
 * no handler of the program runs in between. */
PROFILER_TIME static void record_contention(const struct recorder *recorder,
                                            const struct contention *contention,
                                            uint64_t delay_ns) {
    const int saved = errno;
    signal_mask before;
    uint64_t registers[REGISTER_COUNT];
    REGISTERS_HERE(registers);
    const bool has_room = stack_has_room();
    if (has_room && signals_block(&before)) {
        own_work_begin(contention->thread);
        contention_record_measured(recorder, contention, registers, delay_ns);
        own_work_end();
        signals_restore(&before);
    } else
        thread_count_drop(contention->thread, has_room ? DROP_BUSY : DROP_STACK_END);
    errno = saved;
}

ARCH_ANY_STACK void contention_end(const struct recorder *recorder,
                                   const struct contention *contention) {
    struct thread_state *const thread = contention->thread;
    if (!thread || profiler_tls.thread != thread || thread_is_wiped(thread))
        return;
    if (contention->has_wait_slot)
        wait_slot_end(&thread->wait_slot);
    /* a handler that has interrupted the wait is recording: no second record begins */
    if (!contention->start_nano || profiler_tls.inside)
        return;
    const uint64_t now = now_nano();
    const uint64_t delay_ns = now > contention->start_nano ? now - contention->start_nano : 1;
    if (contention_is_sampled(thread, recorder->settings, now, delay_ns))
        record_contention(recorder, contention, delay_ns);
}
