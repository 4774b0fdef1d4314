/* Appends a record to a file, completely or not at all. The file is open only meanwhile.
 *
 * Programs close descriptors that they do not know, and processes share a file (a parent and its
 * forked children). So the file is opened for each record and locked (flock) while it is written.
 * If a record does not fit (full disk, quota, RLIMIT_FSIZE), its written part is removed again. The
 * file must belong to the process's own user, in a folder where others cannot replace it:
 * private_file.h. Context: flush. The caller holds the quiesce lock, so that no fork inherits the
 * descriptor.
 */
#ifndef OTELPROF_APPEND_FILE_H
#define OTELPROF_APPEND_FILE_H

#include <stdbool.h>
#include <sys/uio.h>

/* Limits the pieces of one record. */
enum { MAX_PIECES = 4 };

/* Appends the pieces as one record. Creates the file with mode 0600 if it does not exist. `lines`:
 * the file consists of lines; if the last one is unfinished (its writer was killed), the record
 * begins on a new line. Returns 0, or -errno (-EWOULDBLOCK: another process is writing, try again),
 * or an error of private_file_open(). After an error the file is unchanged, unless only close() has
 * failed, or another process has appended without the lock. */
int append_file(const char *path, bool lines, const struct iovec *pieces, int count);

#endif
