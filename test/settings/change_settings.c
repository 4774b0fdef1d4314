/* Is linked into a libotelprof.so of its own (Makefile): lets the program that it is preloaded into
 * change the settings. */
#include "capture/change_settings.h"
#include "capture/capture.h"

#define EXPORTED __attribute__((visibility("default")))

/* Changes the settings, and returns once they have changed. `types` is a set of PROFILE_* bits, 0:
 * all of the configuration. A rate of 0 is that of the configuration. */
EXPORTED void test_change_settings(bool on, unsigned types, uint64_t cpu_frequency,
                                   uint64_t alloc_interval);

/* Returns how many samples of its CPU time the calling thread's handler has taken. */
EXPORTED unsigned test_samples_taken(void);

void test_change_settings(bool on, unsigned types, uint64_t cpu_frequency,
                          uint64_t alloc_interval) {
    struct settings_values wanted = settings_configured(capture.config);
    wanted.on = on;
    if (types)
        wanted.types = types;
    if (cpu_frequency)
        wanted.cpu_frequency = cpu_frequency;
    if (alloc_interval)
        wanted.alloc_interval = alloc_interval;
    while (!capture_change_settings(&wanted))
        ;
}

unsigned test_samples_taken(void) {
    return *(volatile uint32_t *)&profiler_tls.thread->samples;
}
