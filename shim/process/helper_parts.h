/* What the two files of the helper share: helper.c is the thread itself, helper_control.c what the
 * application's threads ask of it.
 */
#ifndef OTELPROF_HELPER_PARTS_H
#define OTELPROF_HELPER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* From one stage (enum helper_stage) to another. false: it was in none that leads there, or
 * somebody was faster. Context: any. */
bool helper_change_stage(uint32_t from, uint32_t to);

/* The same from any stage before it loads. Context: any. */
bool helper_leave_stage(uint32_t to);

/* Whether somebody waits for what it loads (helper_load_early). Context: any. */
bool helper_is_asked_early(void);

/* Creates the thread that outlives a helper which does not find its end in time. Context: calm. */
void helper_outlive(void);

#endif
