/* Decides whether files may be opened by their paths. Every module calls may_open_by_path() before
 * it opens a file.
 *
 * After the program has changed its root or its mount namespace, no file may be opened by its path,
 * because the path may lead to a file that another user has put there. So everything needed later
 * is read, loaded and initialised before, or left out. Context: flush.
 */
#ifndef OTELPROF_BY_PATH_H
#define OTELPROF_BY_PATH_H

#include <stdbool.h>

/* Sets the check. `may_open`: capture_api.lifecycle.may_open_by_path. */
void by_path_set_check(bool (*may_open)(void));

/* Returns true if files may be opened by their paths, or if no check was set. */
bool may_open_by_path(void);

#endif
