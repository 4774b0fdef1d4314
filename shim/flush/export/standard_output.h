/* Writes a record to the standard output that the process was started with.
 *
 * The descriptor belongs to the application: its flags stay unchanged, nothing is written once the
 * descriptor refers to another file, and a pipe whose reader does not read blocks the profiler for
 * at most two seconds. Context: flush. Must not be called under the quiesce lock, because it may
 * sleep.
 */
#ifndef OTELPROF_STANDARD_OUTPUT_H
#define OTELPROF_STANDARD_OUTPUT_H

#include "log.h"
#include "origin.h"

#include <sys/uio.h>

/* Writes all `pieces`, and changes them. Returns 0 or -errno: -EBADF: the descriptor refers to
 * another file now, or was never open; -EAGAIN: the reader did not read within two seconds.
 * `*written`: the number of bytes written, also on an error. */
int standard_output_write(const struct log *log, const struct origin *origin, struct iovec *pieces,
                          int count, size_t *written);

#endif
