/* Declares functions shared by the helper's files: helper.c runs the thread, helper_control.c sends
 * the application's requests to it, helper_wait.c implements its waits. */
#ifndef OTELPROF_HELPER_PARTS_H
#define OTELPROF_HELPER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true if a thread waits for an early load (helper_load_early). Context: any. */
bool helper_is_asked_early(void);

/* Returns true if the helper may enter the loader: main has begun, or may never begin. Once true,
 * the result stays true in this process. Context: the helper. */
bool helper_constructors_are_over(void);

/* Creates a thread that joins, and so outlives, a helper that does not finish in time. Context:
 * calm. */
void helper_spawn_reaper(void);

#endif
