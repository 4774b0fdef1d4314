/* Defines the names of the helper's thread, and of the threads that its libraries create, which
 * inherit its name. The kernel shows them to every process of the machine.
 *
 * This is the only list. Code that finds the helper by its name calls helper_name_is();
 * scripts/otelprof_lib/listening.py has a copy for Python, which test/scripts compares with this.
 */
#ifndef OTELPROF_HELPER_NAME_H
#define OTELPROF_HELPER_NAME_H

#include <stdbool.h>
#include <string.h>

#define HELPER_NAME "otelprof"
/* Names the helper from the first export that does not arrive until an export arrives
 * (process_tree.h). */
#define HELPER_NAME_UNSENT "otelprof unsent"

/* Returns whether `name`, which has no newline, is one of these names. Async-signal-safe: yes. */
static inline bool helper_name_is(const char *name) {
    return strcmp(name, HELPER_NAME) == 0 || strcmp(name, HELPER_NAME_UNSENT) == 0;
}

#endif
