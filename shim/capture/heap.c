/* Sampled allocations: counted where they were made, remembered until they are freed. */
#include "capture.h"

#include "arch/x86_64.h"
#include "clock.h"
#include "poisson.h"

#include <errno.h>
#include <string.h>

struct address_filter address_filter;

/* --- the interval --- */

bool heap_start(void) {
    atomic_store(&capture.heap.interval, capture.config->alloc_interval);
    capture.heap.told_interval = capture.config->alloc_interval;
    capture.heap.start_nano = clock_nano(CLOCK_MONOTONIC_COARSE);
    return !capture.heap_on || (live_table_start(&capture.live, capture.config->heap_max_live) &&
                                stack_store_start(&capture.stacks));
}

uint64_t heap_interval(void) {
    return atomic_load_explicit(&capture.heap.interval, memory_order_relaxed);
}

void heap_draw_gap(struct thread_state *thread) {
    thread->gap_interval = heap_interval();
    own_tls.alloc_left = poisson_gap(&thread->random, thread->gap_interval);
}

uint32_t heap_now_seconds(void) {
    return (uint32_t)((clock_nano(CLOCK_MONOTONIC_COARSE) - capture.heap.start_nano) /
                      NANO_PER_SECOND);
}

void heap_tell(void) {
    const uint64_t interval = heap_interval();
    if (interval == capture.heap.told_interval)
        return;
    capture.heap.told_interval = interval;
    log_info(capture.log,
             "more than OTEL_PROFILER_HEAP_MAX_LIVE=%llu sampled objects were live; one sample now "
             "stands for %llu bytes",
             (unsigned long long)capture.config->heap_max_live, (unsigned long long)interval);
}

/* --- thinning: too many objects are live --- */

struct thinning {
    uint64_t interval; /* to come */
    uint64_t *random;
    double bytes; /* estimate of all that is live */
};

static bool add_bytes(void *arg, struct live_object *object) {
    struct thinning *const t = arg;
    t->bytes += object->bytes;
    return true;
}

/* An object of weight w was sampled with probability 1/w. It stays with the probability that it
 * would have been sampled at the new interval, given that it was at the old one; what stays weighs
 * accordingly more, so that the sums remain unbiased. */
static bool stays(void *arg, struct live_object *object) {
    const struct thinning *const t = arg;
    const double size = object->bytes / object->objects;
    const double weight = poisson_weight((uint64_t)(size + 0.5), t->interval);
    if (weight <= object->objects)
        return true;
    if (random_unit(t->random) * weight > object->objects) {
        address_filter_change(&address_filter, (const void *)object->address, -1);
        return false;
    }
    object->bytes *= weight / object->objects;
    object->objects = weight;
    return true;
}

/* At an interval of (live bytes ÷ n) at most n objects are expected to stay. Under a millisecond
 * for the default bound, and the interval at least doubles each time: few will ever see it. */
static void thin_out(struct thread_state *thread) {
    struct thinning t = {.random = &thread->random};
    live_table_sift(&capture.live, add_bytes, &t);
    const double wanted = 2 * t.bytes / (double)capture.config->heap_max_live;
    const uint64_t largest = UINT64_C(1) << 60;
    t.interval = heap_interval();
    do
        t.interval *= 2;
    while ((double)t.interval < wanted && t.interval < largest);
    if (t.interval > largest)
        return;
    atomic_store_explicit(&capture.heap.interval, t.interval, memory_order_relaxed);
    live_table_sift(&capture.live, stays, &t);
}

static void keep_within_bound(struct thread_state *thread) {
    if (atomic_load_explicit(&capture.live.count, memory_order_relaxed) <=
        capture.config->heap_max_live)
        return;
    if (atomic_exchange_explicit(&capture.heap.thinning, true, memory_order_acquire))
        return;
    thin_out(thread);
    atomic_store_explicit(&capture.heap.thinning, false, memory_order_release);
}

/* --- one allocation --- */

static void remember(struct thread_state *thread, const void *object, const struct sample *sample) {
    const uint32_t stack = stack_store_keep(&capture.stacks, sample->frames, sample->frame_count,
                                            sample->flags, modules_interval(&capture.modules));
    if (stack == STACK_NONE) {
        thread_count_drop(thread, DROP_STACK_STORE_FULL);
        return;
    }
    const struct live_object live = {.address = (uintptr_t)object,
                                     .objects = sample->objects,
                                     .bytes = sample->bytes,
                                     .stack = stack,
                                     .birth = capture.config->heap_age ? heap_now_seconds() : 0};
    bool replaced;
    if (!live_table_insert(&capture.live, &live, &replaced)) {
        thread_count_drop(thread, DROP_LIVE_FULL);
        return;
    }
    if (!replaced)
        address_filter_change(&address_filter, object, 1);
    keep_within_bound(thread);
}

/* A stack that only the helper could finish is kept as far as it is known. */
static void mark_unfinished(struct sample *sample, enum unwind_end end) {
    if (end == UNWIND_EXPRESSION)
        sample->flags |= SAMPLE_TRUNCATED;
}

__attribute__((noinline)) void heap_sample(void *object, uint64_t size) {
    struct thread_state *const thread = own_tls.thread;
    const int saved = errno;
    own_tls.inside++;
    own_tls.alloc_samples++;
    const double weight = poisson_weight(size, thread->gap_interval);
    heap_draw_gap(thread);

    uint64_t registers[REGISTER_COUNT];
    REGISTERS_HERE(registers);
    struct sample sample = {
        .kind = SAMPLE_ALLOC, .objects = weight, .bytes = weight * (double)size};
    enum unwind_end end;
    bool crossed_signal;
    record_stack(thread, registers, (struct stack_range){0, 0}, &sample, &end, &crossed_signal);
    if (capture.heap_on) {
        mark_unfinished(&sample, end);
        remember(thread, object, &sample);
    }

    own_tls.inside--;
    errno = saved;
}

/* Nested in our own code (a signal handler of the application that frees while this thread samples)
 * the table may be locked by this very thread: the object stays listed until its address is used
 * again. */
bool heap_forget(const void *object, struct live_object *taken) {
    if (!capture.heap_on)
        return false;
    if (own_tls.inside) {
        atomic_fetch_add_explicit(&capture.dropped[DROP_BUSY], 1, memory_order_relaxed);
        return false;
    }
    own_tls.inside++;
    const bool found = live_table_remove(&capture.live, (uintptr_t)object, taken);
    own_tls.inside--;
    if (found)
        address_filter_change(&address_filter, object, -1);
    return found;
}

void heap_put_back(const struct live_object *taken) {
    bool replaced = false;
    own_tls.inside++;
    const bool fits = live_table_insert(&capture.live, taken, &replaced);
    own_tls.inside--;
    if (!fits)
        atomic_fetch_add_explicit(&capture.dropped[DROP_LIVE_FULL], 1, memory_order_relaxed);
    else if (!replaced)
        address_filter_change(&address_filter, (const void *)taken->address, 1);
}
