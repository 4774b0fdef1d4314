/* What is profiled at present: one decision, from all who may have a say.
 *
 * The configuration is the base. The watched file and requests change single values of it, a
 * recording raises rates for a time, the budget lowers them, and a busy machine has all turned off.
 * The outcome goes to capture, which follows it (capture/change_settings.h); what capture cannot
 * follow at once is tried again. Context of all: flush.
 */
#ifndef OTELPROF_CONTROL_H
#define OTELPROF_CONTROL_H

#include "harvest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control;

enum { CONTROL_PROBLEM = 256 };

/* From `api->config`; `api` stays where it is. Capture is told what differs from how it started.
 * NULL: no memory. */
struct control *control_open(const struct capture_api *api);
void control_close(struct control *control); /* NULL will do */

/* At each export, before its harvest: `nano` have passed since the last one. */
void control_look(struct control *control, uint64_t nano);

/* Whether all that the interval recorded that the last look ended is exported
 * (OTEL_PROFILER_CONDITION). */
bool control_exports(const struct control *control);

/* If not: samples of spans that last longer than so many nanoseconds are; 0: none. */
uint64_t control_span_bound(const struct control *control);

/* Whether nothing is sampled because processors are too busy (OTEL_PROFILER_CPU_THRESHOLD), and for
 * that reason alone, and for how long that has been so altogether. */
bool control_sheds(const struct control *control);
uint64_t control_shed_nano(const struct control *control);

/* When control_look_again() is due (CLOCK_MONOTONIC, ns); UINT64_MAX: at exports alone. It is soon
 * where capture could not follow: who asks from within a wait() ends that. */
uint64_t control_next_look(const struct control *control);
void control_look_again(struct control *control);

/* --- requests --- */

/* Takes the lines of `text` ("NAME=value" each, settable.def; an empty value: as it would be
 * without requests), all or none. false: `problem` says, in one sentence, which line was wrong and
 * what happens now (nothing changes). */
bool control_set(struct control *control, const char *text, size_t size,
                 char problem[static CONTROL_PROBLEM]);

/* Whether control_record() would take them; nothing changes. */
bool control_check(const struct control *control, const char *text, size_t size,
                   char problem[static CONTROL_PROBLEM]);

/* The same lines for as long as the recording lasts, which only turns on, adds types and raises
 * rates: of several the finest hold. Its number, or 0: `problem` says why (16 at most at once). */
uint32_t control_record(struct control *control, const char *text, size_t size,
                        char problem[static CONTROL_PROBLEM]);
void control_record_end(struct control *control, uint32_t recording); /* 0, or ended: nothing */

/* Visits each settable variable, in the order of the list, with the value in force, as the
 * environment would say it. Both texts are valid during the visit. */
typedef void control_visit(void *arg, const char *name, const char *value);
void control_list(const struct control *control, control_visit *visit, void *arg);

/* The values in force, as capture has been told. */
struct settings_values control_in_force(const struct control *control);

/* Whether the budget has lowered any of them (budget.h). */
bool control_is_lowered(const struct control *control);

#endif
