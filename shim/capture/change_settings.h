/* Changes which profiles are recorded, and how densely, while the program runs (common/settings.h).
 *
 * The thread that changes the settings turns CPU time off and on for every thread: a thread without
 * a timer would never check. Each thread follows all other settings by itself, at its next sample
 * or where its countdown ends (record/countdown.h). */
#ifndef OTELPROF_CHANGE_SETTINGS_H
#define OTELPROF_CHANGE_SETTINGS_H

#include "record/thread_table.h"
#include "settings.h"

#include <stdbool.h>

/* Applies `wanted`, as far as the process can follow it (settings_within()). While allocations are
 * off none is sampled, and objects sampled before leave the live heap as they are freed; objects
 * allocated meanwhile are in no profile, even if they outlive that. Returns false if nothing has
 * changed, because nothing is profiled here, or because another thread is changing the settings or
 * the signal: the caller may try again. Context: calm, or the helper. errno is preserved. */
bool capture_change_settings(const struct settings_values *wanted);

/* Pauses sampling until the program resumes it, whatever the settings are meanwhile. Returns false
 * as above. Context: calm. errno is preserved. */
bool capture_pause(bool pause);

/* Sets the child's settings: all of those last wanted, even if another thread of the parent was
 * just publishing them; and allocations are sampled at the interval of the settings, not at one
 * that the parent's live heap has made longer. Profiles that were shed are sampled again: without
 * samples a thread that only computes would never start a helper, which would check the load.
 * Context: a forked child, before its timers follow. */
void capture_settings_after_fork(void);

/* Makes the calling thread's timer follow the settings. Returns true if they have changed since it
 * last did, and its gap must be drawn again. errno is preserved. Context: the slow path of an
 * allocation, profiler_tls.inside 0. */
bool capture_follow_settings(struct thread_state *thread);

#endif
