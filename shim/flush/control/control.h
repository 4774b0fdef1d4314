/* Decides what is profiled at present, from all sources of settings.
 *
 * The configuration is the base. The watched file and requests change single values; recordings
 * raise rates for a time; the budget lowers them; a busy machine suspends all sampling. The result
 * is passed to capture (capture/change_settings.h); a change that capture cannot apply at once is
 * tried again. Context of all: flush.
 */
#ifndef OTELPROF_CONTROL_H
#define OTELPROF_CONTROL_H

#include "harvest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control;

enum { CONTROL_PROBLEM = 256 };

/* Starts from `api->config`, and applies to capture the settings that differ from the start's.
 * `api` must outlive the result. Returns NULL without memory. */
struct control *control_open(const struct capture_api *api);
void control_close(struct control *control); /* accepts NULL */

/* Call at each export, before its harvest. `nano` have passed since the last export. */
void control_poll(struct control *control, uint64_t nano);

/* Returns true if the interval that control_poll() ended last must be exported as a whole
 * (OTEL_PROFILER_CONDITION). */
bool control_exports(const struct control *control);

/* Returns the length in nanoseconds beyond which spans are exported even if control_exports() is
 * false; 0: none is. */
uint64_t control_span_bound(const struct control *control);

/* control_sheds() returns true if nothing is sampled only because processors are too busy
 * (OTEL_PROFILER_CPU_THRESHOLD); control_shed_nano() returns the total time in this state. */
bool control_sheds(const struct control *control);
uint64_t control_shed_nano(const struct control *control);

/* Returns when control_poll_again() is due (CLOCK_MONOTONIC, ns); UINT64_MAX: only at exports. A
 * retry may be due soon after a request, so code that runs inside a wait.until() must end the wait
 * after it changes settings. */
uint64_t control_next_poll(const struct control *control);
void control_poll_again(struct control *control);

/* --- requests --- */

/* Applies the lines of `text` ("NAME=value" each, settable.def; an empty value removes the
 * request's setting), all or none. Returns false on an error, with a sentence in `problem` that
 * names the wrong line and the consequence (nothing changes). */
bool control_set(struct control *control, const char *text, size_t size,
                 char problem[static CONTROL_PROBLEM]);

/* Returns true if control_record() would accept the lines; changes nothing. */
bool control_check(const struct control *control, const char *text, size_t size,
                   char problem[static CONTROL_PROBLEM]);

/* Applies the same kind of lines while a recording lasts. They only make values finer
 * (settable.def): for example, they enable types and raise rates. Of several recordings, the finest
 * values hold. Returns the recording's number, or 0 with the reason in `problem` (16 recordings at
 * most). */
uint32_t control_record(struct control *control, const char *text, size_t size,
                        char problem[static CONTROL_PROBLEM]);
/* Ends a recording. Does nothing if the number is 0 or its recording has ended. */
void control_record_end(struct control *control, uint32_t recording);

/* Visits each settable variable in the order of the list, with the value in force as the
 * environment would have it. Both texts are valid during the visit. */
typedef void control_visit(void *arg, const char *name, const char *value);
void control_list(const struct control *control, control_visit *visit, void *arg);

/* Returns why nothing is sampled although OTEL_PROFILER_START=on was set, as a constant text; NULL:
 * sampling is on, or is set to off. */
const char *control_why_off(const struct control *control);

/* Returns the settings that capture has applied. */
struct settings_values control_in_force(const struct control *control);

/* Returns true if the budget has lowered any rate (budget.h). */
bool control_is_lowered(const struct control *control);

#endif
