/* Implements the calls by which the program controls the profiler: stop, start, export, read
 * counters. */
#define OTELPROF_IMPLEMENTATION
#include "otelprof.h"

#include "capture/capture.h"
#include "capture/change_settings.h"
#include "capture/thread_life.h"
#include "drop_reason.h"
#include "process/helper.h"
#include "process/wanted_export.h"

#include <string.h>

/* Bounds the tries: a try fails while another thread changes the settings. */
enum { TRIES = 3 };

/* Returns true if this process is profiled, and the calling thread is known to the profiler and has
 * not left it. */
static bool may_work(void) {
    return atomic_load(&capture.armed) && profiler_tls.thread && capture_is_of_this_thread();
}

static int pause_sampling(bool pause) {
    for (int i = 0; i < TRIES && may_work(); i++)
        if (capture_pause(pause)) {
            if (capture.waits.types) /* wakes the helper, which may sleep until the next export */
                helper_wake();
            return 1;
        }
    return 0;
}

int otelprof_stop(void) {
    return pause_sampling(true);
}

int otelprof_start(void) {
    return pause_sampling(false);
}

int otelprof_flush(unsigned timeout_ms) {
    if (!may_work())
        return 0;
    capture_offer_helper(); /* starts a helper, because a forked child may have none yet */
    return wanted_export_request(timeout_ms);
}

/* --- counters --- */

static uint64_t lost_samples(void) {
    static const enum drop_reason reasons[] = {DROP_BUSY,       DROP_TABLE_FULL, DROP_NO_MEMORY,
                                               DROP_QUEUE_FULL, DROP_CLAIMED,    DROP_REJECTED,
                                               DROP_FILE,       DROP_AT_EXIT,    DROP_ENCODE};
    uint64_t counts[DROP_REASON_COUNT];
    uint64_t lost = 0;
    for (int i = 0; i < DROP_REASON_COUNT; i++)
        counts[i] = atomic_load_explicit(&capture.recorder.dropped[i], memory_order_relaxed);
    thread_table_dropped(&capture.threads, counts);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        lost += counts[reasons[i]];
    return lost;
}

/* Fills in as many counters as the program has: a program built with another version's header has
 * fewer counters, or more. */
int otelprof_counters_read(struct otelprof_counters *counters) {
    if (!counters || counters->size < sizeof counters->size || !may_work())
        return 0;
    const struct thread_samples samples = thread_table_samples(&capture.threads);
    const struct otelprof_counters all = {.size = counters->size,
                                          .samples = samples.recorded,
                                          .linked_samples = samples.linked,
                                          .lost_samples = lost_samples(),
                                          .exports = wanted_export_delivered(),
                                          .failed_exports = wanted_export_failed(),
                                          .cpu_nano = helper_cpu_nano()};
    const size_t size = counters->size;
    memset(counters, 0, size);
    memcpy(counters, &all, size < sizeof all ? size : sizeof all);
    return 1;
}
