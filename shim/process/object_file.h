/* Checks that the file of a shared object is as long as its headers promise.
 *
 * The loader maps and relocates the segments of the program headers without a check of the file's
 * size. So a partial copy (after a full disk, or an interrupted upgrade) ends the process by
 * SIGBUS. elf(5) describes the layout.
 */
#ifndef OTELPROF_OBJECT_FILE_H
#define OTELPROF_OBJECT_FILE_H

#include <stdbool.h>

/* Returns false if the file ends before its last segment. Returns true if the file cannot be read,
 * or is no object, because the loader itself reports such a file. Uses a descriptor of the calling
 * thread's table. Context: flush. */
bool object_file_is_whole(const char *path);

#endif
