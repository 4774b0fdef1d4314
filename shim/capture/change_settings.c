#include "change_settings.h"

#include "capture.h"
#include "clock.h"

#include <errno.h>
#include <unistd.h>

static struct settings_values not_paused(void) {
    struct settings_values values = capture.wanted;
    values.on &= !capture.paused;
    return values;
}

/* Applies both settings; the one that is NULL stays as it is. Returns false, without a change, if
 * another thread is changing the settings or the signal. */
static bool change_to(const struct settings_values *wanted, const bool *pause) {
    const int saved = errno;
    sampler_wait_stable();
    const bool may = sampler_begin_move();
    if (may) {
        if (wanted)
            capture.wanted = settings_within(wanted, capture.config);
        if (pause)
            capture.paused = *pause;
        const struct settings_values values = not_paused();
        /* stored before the version: a thread that sees the new version draws gaps by the new
         * mean */
        if (values.alloc_interval != settings_alloc_interval(&capture.settings))
            heap_set_interval(&capture.heap, values.alloc_interval);
        settings_publish(&capture.settings, &values);
        sampler_follow_settings();
        sampler_end_move();
    }
    errno = saved;
    return may;
}

static bool may_change(void) {
    return atomic_load(&capture.armed) && getpid() == capture.pid;
}

bool capture_change_settings(const struct settings_values *wanted) {
    return may_change() && change_to(wanted, NULL);
}

bool capture_pause(bool pause) {
    return may_change() && change_to(NULL, &pause);
}

void capture_settings_after_fork(void) {
    capture.wanted.shed = false;
    const struct settings_values values = not_paused();
    heap_set_interval(&capture.heap, values.alloc_interval);
    settings_restart_accounts(&capture.settings, monotonic_nano());
    settings_publish(&capture.settings, &values);
}

bool capture_follow_settings(struct thread_state *thread) {
    const uint32_t version = settings_version(&capture.settings);
    const int saved = errno;
    if (thread->alloc_settings == version)
        return false;
    thread->alloc_settings = version;
    sampler_follow_period(thread);
    errno = saved;
    return true;
}
