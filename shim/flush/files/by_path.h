/* Whether a file may be opened by its path: the one question before anything is.
 *
 * Not once the program has changed its root or its mount namespace: then the path leads to what
 * others may have put there. What is needed afterwards has been read, loaded and initialised
 * before, or is done without. Context: flush.
 */
#ifndef OTELPROF_BY_PATH_H
#define OTELPROF_BY_PATH_H

#include <stdbool.h>

/* `answer`: capture_api.may_open_by_path. */
void by_path_ask(bool (*answer)(void));

/* true where nobody was named to ask. */
bool may_open_by_path(void);

#endif
