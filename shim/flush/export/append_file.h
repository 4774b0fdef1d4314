/* Appends a record to a file that is open for no longer than that: all of it or nothing.
 *
 * Programs close descriptors that they do not know and processes share a file (a parent and its
 * forked children do), so the file is opened for each record, and locked (flock) while it is
 * written. What was written of a record that does not fit (a full disk, a quota, RLIMIT_FSIZE) is
 * cut off again. Only a file of the process's own is taken, where others cannot replace it:
 * own_file.h.
 * Context: flush. Under the quiesce lock, so that no fork inherits the descriptor.
 */
#ifndef OTELPROF_APPEND_FILE_H
#define OTELPROF_APPEND_FILE_H

#include <stdbool.h>
#include <sys/uio.h>

/* The most pieces that a record may have. */
enum { MAX_PIECES = 4 };

/* Creates the file with mode 0600 where there is none. `lines`: it holds lines; when its last one
 * was left unfinished (whoever wrote it was killed) the record begins on a line of its own.
 * Returns 0, or, with the file as it was, -errno (-EWOULDBLOCK: somebody else is writing, try
 * again) or what own_file_open() refuses. */
int append_file(const char *path, bool lines, const struct iovec *pieces, int count);

#endif
