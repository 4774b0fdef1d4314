/* Decides whether files may be opened by their paths. Every module calls it before it opens a file.
 *
 * After the program has changed its root or its mount namespace they may not, because a path then
 * leads to files that others may have put there. So everything needed later is read, loaded and
 * initialised before, or left out. Context: flush.
 */
#ifndef OTELPROF_BY_PATH_H
#define OTELPROF_BY_PATH_H

#include <stdbool.h>

/* `may_open`: capture_api.lifecycle.may_open_by_path. */
void by_path_set_check(bool (*may_open)(void));

/* Returns true if no check was set. */
bool may_open_by_path(void);

#endif
