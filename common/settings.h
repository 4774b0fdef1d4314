/* Holds the settings that may change while the program runs, apart from the configuration, which is
 * const.
 *
 * There is one `struct settings` in a process. A writer stores the values, then a new version. Its
 * readers are threads at any point of their work: they read single values by relaxed loads, and
 * never wait. A reader may see some values of the new version and some of the one before; then it
 * sees the new version soon, and reads all of them again. So each reader of more than one value
 * remembers the version that it has followed, and reads that first. A kind that the configuration
 * lacks at the start was not prepared, and cannot be turned on later: no hook has watched for it.
 */
#ifndef OTELPROF_SETTINGS_H
#define OTELPROF_SETTINGS_H

#include "config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The values that a caller sets. */
struct settings_values {
    bool on;
    bool shed;               /* off in spite of `on`, for now; a forked child decides for itself */
    unsigned types;          /* PROFILE_* bits: sampled while it is on */
    uint64_t cpu_frequency;  /* Hz, >= 1 */
    uint64_t alloc_interval; /* bytes, >= 1 */
    uint64_t wait_frequency; /* Hz, >= 1 */
    uint64_t lock_interval;  /* nanoseconds, >= 1 */
    uint32_t max_stack_depth;
    bool span_times; /* the times of samples of spans are recorded */
};

struct settings {
    _Atomic uint32_t version; /* of what follows; wraps */
    _Atomic unsigned types;   /* 0 while it is off */
    _Atomic uint64_t cpu_period_nano;
    _Atomic uint64_t alloc_interval;
    _Atomic uint64_t wait_period_nano;
    _Atomic uint64_t lock_interval;
    _Atomic uint32_t max_stack_depth;
    _Atomic bool span_times;
};

/* Returns the values of the configuration. Context: any. */
struct settings_values settings_configured(const struct config *config);

/* Returns `values`, as far as a process that started with `config` can follow them: only its own
 * types, stacks of at most its depth, rates within the bounds of the variables. Context: any. */
struct settings_values settings_within(const struct settings_values *values,
                                       const struct config *config);

/* Publishes them under a new version. One thread at a time. Context: any. Async-signal-safe: yes.
 */
void settings_publish(struct settings *settings, const struct settings_values *values);

/* --- for readers. Context: any. Async-signal-safe: yes --- */

/* Must be read before the values: pairs with the release in settings_publish(). */
static inline uint32_t settings_version(const struct settings *settings) {
    return atomic_load_explicit(&settings->version, memory_order_acquire);
}

static inline unsigned settings_types(const struct settings *settings) {
    return atomic_load_explicit(&settings->types, memory_order_relaxed);
}

static inline uint64_t settings_cpu_period_nano(const struct settings *settings) {
    return atomic_load_explicit(&settings->cpu_period_nano, memory_order_relaxed);
}

static inline uint64_t settings_alloc_interval(const struct settings *settings) {
    return atomic_load_explicit(&settings->alloc_interval, memory_order_relaxed);
}

static inline uint64_t settings_wait_period_nano(const struct settings *settings) {
    return atomic_load_explicit(&settings->wait_period_nano, memory_order_relaxed);
}

static inline uint64_t settings_lock_interval(const struct settings *settings) {
    return atomic_load_explicit(&settings->lock_interval, memory_order_relaxed);
}

static inline uint32_t settings_max_stack_depth(const struct settings *settings) {
    return atomic_load_explicit(&settings->max_stack_depth, memory_order_relaxed);
}

static inline bool settings_span_times(const struct settings *settings) {
    return atomic_load_explicit(&settings->span_times, memory_order_relaxed);
}

#endif
