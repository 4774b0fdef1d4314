/* Finds the file of the program by the name that was given to exec (AT_EXECFN), for a process that
 * does not see /proc: in a chroot that holds only a program and its libraries.
 *
 * The name may be a script's, or a file that was replaced since. So the file is compared with what
 * the kernel has loaded: entry point, program headers and notes, with the build id among them.
 * Context: calm, no allocation. Takes a descriptor of the calling thread's table for a moment.
 */
#ifndef OTELPROF_STARTED_FILE_H
#define OTELPROF_STARTED_FILE_H

#include <stddef.h>

/* Writes the absolute path. A relative name counts from the working directory: it must be the one
 * at the start, or another file is found, which is not the program's. Returns the length; 0, and
 * "", if there is no such file, or it does not fit. */
size_t started_file_path(char *path, size_t size);

#endif
