/* Changes which profiles are recorded, and how densely, while the program runs (common/settings.h).
 *
 * The thread that changes the settings turns CPU time off and on for every thread, because a thread
 * without a timer would never check them. Each thread applies all other settings to itself, at its
 * next sample or when its countdown ends (record/countdown.h). */
#ifndef OTELPROF_CHANGE_SETTINGS_H
#define OTELPROF_CHANGE_SETTINGS_H

#include "record/thread_table.h"
#include "settings.h"

#include <stdbool.h>

/* Applies `wanted`, as far as the process can follow it (settings_within()). While allocations are
 * off, no allocation is sampled; objects sampled before leave the live heap when they are freed.
 * Objects that are allocated meanwhile never enter a profile. Returns false, without a change, if
 * nothing is profiled here, or if another thread is changing the settings or the signal: then the
 * caller may try again. Context: calm, or the helper. errno is preserved. */
bool capture_change_settings(const struct settings_values *wanted);

/* Pauses sampling until the program resumes it, even if the settings change. Returns false as
 * capture_change_settings() does. Context: calm. errno is preserved. */
bool capture_pause(bool pause);

/* Sets the child's settings: the last ones that the parent wanted, even if another thread of the
 * parent was just publishing them. The allocation interval is the configured one, although the
 * parent's live heap may have lengthened it. Profiles that were shed are sampled again, because
 * only a sample starts the child's helper, which checks the load. Context: a forked child, before
 * its timers follow. */
void capture_settings_after_fork(void);

/* Makes the calling thread's timer follow the settings. Returns true if the settings have changed
 * since its last call: the thread must then draw its gap again. errno is preserved. Context: the
 * slow path of an allocation, profiler_tls.inside 0. */
bool capture_follow_settings(struct thread_state *thread);

#endif
