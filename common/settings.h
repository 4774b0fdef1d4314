/* Holds the settings that may change while the program runs, apart from the configuration, which is
 * const.
 *
 * A process has one `struct settings`. A writer stores the values, and then a new version. Readers
 * are threads at any point of their work: they read single values by relaxed loads, and never wait.
 * A reader may see some new values and some old ones; then it soon sees the new version, and reads
 * all values again. So each reader of several values remembers the version that it has applied, and
 * reads the version first. A kind of profile that the configuration lacks at the start cannot be
 * turned on later, because it was not prepared: for example, no hook has counted allocations.
 */
#ifndef OTELPROF_SETTINGS_H
#define OTELPROF_SETTINGS_H

#include "config.h"
#include "profile_kind.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Holds the values that a caller sets. */
struct settings_values {
    bool on;
    /* profiling is off for now in spite of `on`; a forked child decides for itself */
    bool shed;
    unsigned types;          /* PROFILE_* bits that are sampled while profiling is on */
    uint64_t cpu_frequency;  /* Hz, >= 1 */
    uint64_t alloc_interval; /* bytes, >= 1 */
    uint64_t wait_frequency; /* Hz, >= 1 */
    uint64_t lock_interval;  /* nanoseconds, >= 1 */
    uint32_t max_stack_depth;
    bool span_times; /* the times of samples of spans are recorded */
};

/* Accounts for the time in which a type is sampled. One word holds the account: while the type is
 * off, the sum so far; while it is on, the highest bit, and the moment at which sampling would have
 * begun to make that sum without a break. So a reader gets the account before a change or after it.
 */
struct sampled_account {
    _Atomic uint64_t word;
    _Atomic uint64_t begun; /* when the type was last turned on, CLOCK_MONOTONIC, ns */
};
#define SAMPLED_NOW (UINT64_C(1) << 63)

/* Holds for how long a type was sampled, in ns. */
struct sampled_time {
    uint64_t nano;  /* sum since the process's profiling began */
    uint64_t begun; /* when the type was last turned on, CLOCK_MONOTONIC */
};

struct settings {
    _Atomic uint32_t version; /* version of the following values; wraps */
    _Atomic unsigned types;   /* 0 while profiling is off */
    _Atomic uint64_t cpu_period_nano;
    _Atomic uint64_t alloc_interval;
    _Atomic uint64_t wait_period_nano;
    _Atomic uint64_t lock_interval;
    _Atomic uint32_t max_stack_depth;
    _Atomic bool span_times;
    struct sampled_account sampled[PROFILE_WORDS];
};

/* Returns the values of the configuration. Context: any. */
struct settings_values settings_configured(const struct config *config);

/* Returns `values`, limited to those that a process that started with `config` can apply: only its
 * own types, stacks of at most its depth, frequencies within the bounds of the variables, intervals
 * of at least 1. Context: any. */
struct settings_values settings_within(const struct settings_values *values,
                                       const struct config *config);

/* Publishes the values under a new version. Only one thread may call at a time. Context: any.
 * Async-signal-safe: yes.
 */
void settings_publish(struct settings *settings, const struct settings_values *values);

/* Makes the accounts of sampled time begin at `now` (CLOCK_MONOTONIC, ns). Context: fork handler,
 * in the child. Async-signal-safe: yes. */
void settings_restart_accounts(struct settings *settings, uint64_t now);

/* --- for readers. Context: any. Async-signal-safe: yes --- */

/* Returns the version. Must be read before the values: pairs with the release in
 * settings_publish(). */
static inline uint32_t settings_version(const struct settings *settings) {
    return atomic_load_explicit(&settings->version, memory_order_acquire);
}

static inline unsigned settings_types(const struct settings *settings) {
    return atomic_load_explicit(&settings->types, memory_order_relaxed);
}

/* Returns the time until `now` (CLOCK_MONOTONIC, ns) in which the type was sampled. */
static inline struct sampled_time settings_sampled(const struct settings *settings,
                                                   enum profile_word type, uint64_t now) {
    const struct sampled_account *const account = &settings->sampled[type];
    /* pairs with the releases in account_for() and settings_restart_accounts(): `begun` is not
     * older */
    const uint64_t word = atomic_load_explicit(&account->word, memory_order_acquire);
    const uint64_t nano = word & ~SAMPLED_NOW;
    return (struct sampled_time){.nano = !(word & SAMPLED_NOW) ? nano
                                         : now > nano          ? now - nano
                                                               : 0,
                                 .begun =
                                     atomic_load_explicit(&account->begun, memory_order_relaxed)};
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
