/* Changing what is profiled, and how densely, while the program runs (common/settings.h).
 *
 * CPU time is turned off and on for every thread by who changes the settings: a thread without a
 * timer would never look. All else a thread follows by itself, at its next sample or where its
 * countdown ends (record/countdown.h).
 */
#ifndef OTELPROF_CHANGE_SETTINGS_H
#define OTELPROF_CHANGE_SETTINGS_H

#include "record/thread_table.h"
#include "settings.h"

#include <stdbool.h>

/* The settings are `wanted` from now on, as far as the process can follow them (settings_within()).
 * While allocations are off none is sampled, and those that were before leave the live heap as they
 * are freed; what is allocated meanwhile is in no profile, even if it outlives that. false: nothing
 * has changed, because nothing is profiled here, or because another thread is changing them, or the
 * signal: it may be tried again. Context: calm, or the helper. errno is preserved. */
bool capture_change_settings(const struct settings_values *wanted);

/* Nothing is sampled until the program wants it again, whatever the settings are meanwhile. false:
 * as above. Context: calm. errno is preserved. */
bool capture_pause(bool pause);

/* The child's settings are those that were wanted last, all of them, even if another thread of the
 * parent was just publishing them; and its allocations are sampled at the interval of the settings,
 * not at one that the parent's live heap has made longer. What was shed is sampled again: without
 * samples a thread that only computes would never have a helper made, which would look at the load.
 * Context: a forked child, before its timers follow. */
void capture_settings_after_fork(void);

/* The calling thread's timer follows the settings. true: they have changed since it last did, and
 * its gap is to be drawn again. errno is preserved. Context: the slow path of an allocation,
 * own_tls.inside 0. */
bool capture_follow_settings(struct thread_state *thread);

#endif
