/* Makes a process whose helper does nothing by itself: its thread ends at once. The test sets the
 * state that a helper would have set, before or while another thread sleeps (fake_sleep.h). */
#ifndef OTELPROF_TEST_IDLE_HELPER_H
#define OTELPROF_TEST_IDLE_HELPER_H

#include "capture.h"
#include "fake_sleep.h"
#include "process/helper.h"

#include <pthread.h>

enum {
    TIMEOUT_MS = 300,
    MIN_LIFETIME_MS = 1000,
    ENDED = 1 << 24, /* beyond the ids that the kernel gives (PID_MAX_LIMIT) */
};

static const struct config config = {.min_lifetime_ms = MIN_LIFETIME_MS,
                                     .shutdown_timeout_ms = TIMEOUT_MS,
                                     .cpu_frequency = 100,
                                     .wait_frequency = 49,
                                     .lock_interval = 10000};
static struct log quiet = {.level = LOG_NONE, .file = ""};

static struct {
    int created;
    bool refused;
} helper_threads;

static void *end_at_once(void *unused) {
    return unused;
}

/* Replaces libc's pthread_create(). */
static int create_idle_thread(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *),
                              void *argument) {
    (void)run, (void)argument;
    if (helper_threads.refused)
        return EAGAIN;
    helper_threads.created++;
    return pthread_create(id, attributes, end_at_once, NULL);
}

/* Runs before each test: there is no helper yet, and nothing is sampled. */
static void begin_without_helper(void) {
    memset(&helper_threads, 0, sizeof helper_threads);
    fake_sleep_reset();
    capture.recorder.threads = &capture.threads;
    sampler_prepare(&config, &quiet, &capture.recorder, &capture.armed, &capture.want_helper);
    helper.config = &config;
    helper.log = &quiet;
    (void)helper_after_fork();
    atomic_store(&process_state.now, STATE_ARMED);
    process_state.owner = getpid();
    capture.pid = getpid();
    atomic_store(&capture_is_off, false);
    atomic_store(&helper.joined, false);
    atomic_store(&capture.live_threads, 2);
    profiler_tls.is_profiler_thread = false;
}

/* Starts a helper that waits for its time. */
static void start_idle_helper(void) {
    assert_true(helper_start());
    atomic_store(&helper.tid, ENDED);
}

static void become_due(void) {
    fake_sleep.now_nano += (uint64_t)MIN_LIFETIME_MS * NANO_PER_MILLI;
}

/* Starts a helper that has loaded its libraries. */
static void start_working_helper(void) {
    start_idle_helper();
    become_due();
    atomic_store(&helper.state, HELPER_WORKS);
}

/* Returns the time slept since the helper began to work. */
static uint64_t milliseconds_slept_at_work(void) {
    return milliseconds_slept() - MIN_LIFETIME_MS;
}

static uint32_t requested(void) {
    return atomic_load(&helper.request);
}

static void is_done(void) {
    atomic_store(&helper.state, HELPER_DONE);
}

#endif
