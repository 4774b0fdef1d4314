/* Whether the file of a shared object has all that its headers promise.
 *
 * The loader maps what the program headers name and relocates it without a look at the file's size:
 * an object that was copied in part (a full disk, an upgrade that was cut off) ends the process by
 * SIGBUS. elf(5) has the layout.
 */
#ifndef OTELPROF_OBJECT_FILE_H
#define OTELPROF_OBJECT_FILE_H

#include <stdbool.h>

/* false: the file ends before its last segment does. true also where it cannot be read, or is no
 * object: the loader says so itself. Uses a descriptor of the calling thread's table.
 * Context: flush. */
bool object_file_is_whole(const char *path);

#endif
