/* Remembers the state of the process when the profiler started: its working directory and its
 * standard output. Programs change both (a daemon goes to "/" and closes unused descriptors), but
 * settings in the environment refer to the place where the program was started. */
#ifndef OTELPROF_ORIGIN_H
#define OTELPROF_ORIGIN_H

#include "file_identity.h"

#include <limits.h>

struct origin {
    char folder[PATH_MAX];       /* absolute; "": not known */
    struct file_identity output; /* identity of the file that was descriptor 1 */
};

/* Remembers the state. Context: calm. */
void origin_remember(struct origin *origin);

/* Returns whether descriptor 1 is still the standard output of the start. Context: any. */
bool origin_output_is_unchanged(const struct origin *origin);

#endif
