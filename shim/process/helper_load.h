/* Loads libotelprof-flush.so: chooses the file and the time, and logs a failure. */
#ifndef OTELPROF_HELPER_LOAD_H
#define OTELPROF_HELPER_LOAD_H

#include "harvest.h"

#include <stdbool.h>

/* Loads the flush side, or returns the flush side that the parent process has loaded. Returns NULL,
 * and logs why, if there is none. Context: the helper. */
flush_main *helper_load_flush(void);

/* Loads the object `name` beside libotelprof-flush.so, if its symbol `release` names this build.
 * Returns NULL on failure, and the reason in `*why`. Called under the quiesce lock. Context: the
 * helper. */
void *helper_load_beside(const char *name, const char *release, const char **why);

/* Returns true if paths lead to the same files as at the process's start: not behind another root.
 * Context: any. */
bool helper_may_open_by_path(void);

#endif
