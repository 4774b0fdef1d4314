/* Writes without raising a signal. By default SIGPIPE (a pipe without a reader) and SIGXFSZ (a
 * limit on the size of files) would end the program. Context: calm; no locks.
 */
#ifndef OTELPROF_QUIET_WRITE_H
#define OTELPROF_QUIET_WRITE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Works as writev(2), but starts again after EINTR (restarts.h), and returns -errno instead of -1.
 * `is_helper`: the calling thread is the helper, which blocks every signal as long as it lives. A
 * raised signal stays pending for the helper then, without effect, and writev(2) is the only call.
 */
ssize_t quiet_writev(int descriptor, const struct iovec *pieces, int count, bool is_helper);

/* Advances `pieces` by `done` bytes. Returns how many of the `count` pieces still have bytes:
 * always the last pieces. */
int pieces_advance(struct iovec *pieces, int count, size_t done);

size_t pieces_size(const struct iovec *pieces, int count);

#endif
