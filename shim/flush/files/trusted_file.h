/* Which files are read for names: the rule, in this one place.
 *
 * A program may load a library from a folder that other users can write to, and leave it or unlink
 * it: what lies at that path later is anybody's. So a file is opened only if
 * - nobody but root and the process's own user (real or effective) can write it or put another in
 *   its place: every part of the path, links that it leads through included, belongs to one of the
 *   two and is writable by nobody else. Root's group counts as root, any other group as others. A
 *   sticky folder may be writable by all: there only its owner can replace an entry; or
 * - it is the file that is mapped at an address of the module's: of the same device and inode.
 *
 * What is opened is a regular file, on a descriptor for reading; it is never mapped for its
 * contents, so whoever shortens it makes a read come up short and no more. Context: flush.
 */
#ifndef OTELPROF_TRUSTED_FILE_H
#define OTELPROF_TRUSTED_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* Opens the file at the absolute `path` if only root and the process's user can have put it there.
 * Returns a descriptor (close-on-exec) or -1. */
int trusted_file_open(const char *path);

/* The same, but a folder of root's that is the root of a read-only mount may be writable by its
 * mode: a ConfigMap's is (0777). For files that a setting names. */
int trusted_file_open_given(const char *path);

/* Opens the file at `path`, wherever that is, if it is the one mapped at `address`. Returns a
 * descriptor or -1: it is another, or /proc does not tell. */
int trusted_file_open_mapped(const char *path, uint64_t address);

/* Whether it is a regular file of one name that belongs to root or the process's user and that not
 * everybody can write: in a folder that others write to, nobody else has made it. For a file whose
 * path tells nothing, and of which names alone are taken. */
struct stat;
bool trusted_file_is_own(const struct stat *status);

#endif
