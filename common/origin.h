/* Where the process was when the profiler started: its working directory and its standard output.
 * Programs change both (a daemon goes to "/" and closes what it does not use), and what is
 * configured by the environment means the place where the program was started.
 */
#ifndef OTELPROF_ORIGIN_H
#define OTELPROF_ORIGIN_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct origin {
    char folder[PATH_MAX]; /* absolute; "" = not known */
    dev_t output_device;   /* identity of descriptor 1 */
    ino_t output_inode;
    bool output_usable;
};

/* Context: calm. */
void origin_remember(struct origin *origin);

/* Whether descriptor 1 is still the standard output of the start. Context: any. */
bool origin_output_is_ours(const struct origin *origin);

#endif
