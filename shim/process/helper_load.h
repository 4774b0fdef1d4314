/* Loading libotelprof-flush.so: which file it is, when the loader may be entered, and what is said
 * where it cannot be.
 */
#ifndef OTELPROF_HELPER_LOAD_H
#define OTELPROF_HELPER_LOAD_H

#include "harvest.h"

#include <stdbool.h>

/* Loads the flush side, or finds what the parent process has loaded. NULL: there is none, which has
 * been said. Context: the helper. */
flush_main *helper_load_flush(void);

/* Loads the object `name` that lies beside libotelprof-flush.so, if it says by the symbol `release`
 * that it is of this build. NULL: it could not be, and `*why` says so. Under the quiesce lock.
 * Context: the helper. */
void *helper_load_beside(const char *name, const char *release, const char **why);

/* Whether a path leads to what it led to when the process started: not behind another root.
 * Context: any. */
bool helper_may_open_by_path(void);

#endif
