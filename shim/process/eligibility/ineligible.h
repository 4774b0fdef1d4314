/* Programs that are not profiled for their own sake, whatever the configuration says: what cannot
 * bear a second thread, other memory than its own, or other hooks than a sanitizer's; those that
 * were not started under us; and those that another copy of ours profiles. What the user chooses is
 * in choice.h.
 */
#ifndef OTELPROF_INELIGIBLE_H
#define OTELPROF_INELIGIBLE_H

#include "log.h"

#include <stdbool.h>

/* What otelprof_version() returns. Another copy of ours returns one of its own. */
extern const char own_version[];

/* true, having said why: this process is one. `arguments` are main's, NULL if they are not known.
 * Context: calm, at start. */
bool is_ineligible(const struct log *log, char *const *arguments);

/* true, having said so at the level of debugging: valgrind runs this process. What it finds, counts
 * and prints is of the whole process, our thread and our memory among it; so it belongs to what we
 * leave alone by default. Context: calm, at start. */
bool is_under_valgrind(const struct log *log);

#endif
