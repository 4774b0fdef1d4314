#include "settings.h"

#include "clock.h"

/* States the maximum in options.def for OTEL_PROFILER_CPU_FREQUENCY. */
enum { MOST_FREQUENCY = 4000 };

static uint64_t limit_to(uint64_t value, uint64_t low, uint64_t high) {
    if (value < low)
        return low;
    return value > high ? high : value;
}

struct settings_values settings_configured(const struct config *config) {
    return (struct settings_values){.on = config->start == START_ON,
                                    .types = config->types,
                                    .cpu_frequency = config->cpu_frequency,
                                    .alloc_interval = config->alloc_interval,
                                    .wait_frequency = config->wait_frequency,
                                    .lock_interval = config->lock_interval,
                                    .max_stack_depth = (uint32_t)config->max_stack_depth,
                                    .span_times = config->condition.span_milli != 0};
}

struct settings_values settings_within(const struct settings_values *values,
                                       const struct config *config) {
    return (struct settings_values){
        .on = values->on,
        .shed = values->shed,
        .types = values->types & config->types,
        .cpu_frequency = limit_to(values->cpu_frequency, 1, MOST_FREQUENCY),
        .alloc_interval = limit_to(values->alloc_interval, 1, UINT64_MAX),
        .wait_frequency = limit_to(values->wait_frequency, 1, MOST_FREQUENCY),
        .lock_interval = limit_to(values->lock_interval, 1, UINT64_MAX),
        .max_stack_depth = (uint32_t)limit_to(values->max_stack_depth, 1,
                                              limit_to(config->max_stack_depth, 1, UINT32_MAX)),
        .span_times = values->span_times,
    };
}

/* Continues the accounts of the types that are turned on or off. */
static void account_for(struct settings *settings, unsigned types) {
    const unsigned changed = types ^ settings_types(settings);
    const uint64_t now = changed ? monotonic_nano() : 0;
    for (unsigned type = 0; type < PROFILE_WORDS; type++) {
        struct sampled_account *const account = &settings->sampled[type];
        if (!(changed >> type & 1))
            continue;
        const uint64_t sum = settings_sampled(settings, type, now).nano;
        const bool on = types >> type & 1;
        if (on)
            atomic_store_explicit(&account->begun, now, memory_order_relaxed);
        /* pairs with settings_sampled() */
        atomic_store_explicit(&account->word, on ? SAMPLED_NOW | (now - sum) : sum,
                              memory_order_release);
    }
}

void settings_restart_accounts(struct settings *settings, uint64_t now) {
    const unsigned types = settings_types(settings);
    for (unsigned type = 0; type < PROFILE_WORDS; type++) {
        struct sampled_account *const account = &settings->sampled[type];
        atomic_store_explicit(&account->begun, now, memory_order_relaxed);
        /* pairs with settings_sampled() */
        atomic_store_explicit(&account->word, types >> type & 1 ? SAMPLED_NOW | now : 0,
                              memory_order_release);
    }
}

void settings_publish(struct settings *settings, const struct settings_values *values) {
    const unsigned types = values->on && !values->shed ? values->types : 0;
    account_for(settings, types);
    atomic_store_explicit(&settings->types, types, memory_order_relaxed);
    atomic_store_explicit(&settings->cpu_period_nano, NANO_PER_SECOND / values->cpu_frequency,
                          memory_order_relaxed);
    atomic_store_explicit(&settings->alloc_interval, values->alloc_interval, memory_order_relaxed);
    atomic_store_explicit(&settings->wait_period_nano, NANO_PER_SECOND / values->wait_frequency,
                          memory_order_relaxed);
    atomic_store_explicit(&settings->lock_interval, values->lock_interval, memory_order_relaxed);
    atomic_store_explicit(&settings->max_stack_depth, values->max_stack_depth,
                          memory_order_relaxed);
    atomic_store_explicit(&settings->span_times, values->span_times, memory_order_relaxed);
    /* pairs with settings_version() */
    atomic_fetch_add_explicit(&settings->version, 1, memory_order_release);
}
