/* Decides whether files may be opened by their paths. Every module asks it before it opens one.
 *
 * They may not once the program has changed its root or its mount namespace: the path then leads to
 * files that others may have put there. Anything needed afterwards has been read, loaded and
 * initialised before, or is left out. Context: flush.
 */
#ifndef OTELPROF_BY_PATH_H
#define OTELPROF_BY_PATH_H

#include <stdbool.h>

/* `may_open`: capture_api.lifecycle.may_open_by_path. */
void by_path_set_check(bool (*may_open)(void));

/* Returns true if no check was set. */
bool may_open_by_path(void);

#endif
