/* What the files of the helper share: helper.c is the thread itself, helper_control.c what the
 * application's threads ask of it, helper_wait.c how it waits.
 */
#ifndef OTELPROF_HELPER_PARTS_H
#define OTELPROF_HELPER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether somebody waits for what it loads (helper_load_early). Context: any. */
bool helper_is_asked_early(void);

/* Whether the helper may enter the loader: main has begun, or may never begin. Once true it stays
 * true in this process. Context: the helper. */
bool helper_constructors_are_over(void);

/* Creates the thread that outlives a helper which does not find its end in time. Context: calm. */
void helper_outlive(void);

#endif
