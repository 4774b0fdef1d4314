/* Decides which files are read for names.
 *
 * A program may load a library from a folder that other users can write to, and then leave or
 * unlink it: later that path may hold a file of any user. So a file is opened only if
 * - only root and the process's own user (real or effective) can write it or put another in its
 *   place: every part of the path, the links on the way included, belongs to one of the two and is
 *   writable by no other. Root's group counts as root, any other group as others. A sticky folder
 *   may be writable by all: there only an entry's owner can replace it; or
 * - it is the file mapped at an address of the module: of the same device and inode.
 *
 * The opened file is a regular one, on a descriptor for reading; its contents are never mapped, so
 * if another process shortens the file, the only effect is a short read. Context: flush.
 */
#ifndef OTELPROF_TRUSTED_FILE_H
#define OTELPROF_TRUSTED_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* Opens the file at the absolute `path` if only root and the process's user can have put it there.
 * Returns a descriptor (close-on-exec) or -1. */
int trusted_file_open(const char *path);

/* Opens the file as trusted_file_open() does, but also accepts a folder with a writable mode if
 * root owns it and it is the root of a read-only mount, as the folder of a ConfigMap (0777).
 * Callers use it for files that a setting names. */
int trusted_file_open_given(const char *path);

/* Opens the file at `path`, in any folder, if it is the file that is mapped at `address`. Returns a
 * descriptor; -1 if it is another file, or /proc is missing. */
int trusted_file_open_mapped(const char *path, uint64_t address);

/* Returns true for a regular file with one link that belongs to root or the process's user and is
 * not world-writable: no other user can have created it, even in a folder that all may write to.
 * Callers use it for a file whose path proves nothing, and from which they read only names. */
struct stat;
bool trusted_file_is_own(const struct stat *status);

#endif
