/* Writes a line to the standard output that the process was started with.
 *
 * It is the application's: its flags are not changed, nothing is written once the descriptor has
 * become another file, and a pipe that nobody reads holds us up for two seconds at most.
 * Context: flush. Not under the quiesce lock: it may sleep.
 */
#ifndef OTELPROF_STANDARD_OUTPUT_H
#define OTELPROF_STANDARD_OUTPUT_H

#include "log.h"
#include "origin.h"

#include <sys/uio.h>

/* Writes all `pieces`, which are changed. Returns 0 or -errno: -EBADF: it is another file now, or
 * was never open; -EAGAIN: nobody reads. `*written`: how much went out, also on an error. */
int standard_output_write(const struct log *log, const struct origin *origin, struct iovec *pieces,
                          int count, size_t *written);

#endif
