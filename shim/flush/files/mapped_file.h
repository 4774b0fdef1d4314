/* Checks whether a file is the one mapped at an address of this process.
 *
 * /proc/self/maps has the device and inode of each mapping. On overlayfs and btrfs they differ from
 * fstat()'s for the same file. So one page of the file is mapped for a moment, without any access,
 * and the two lines of maps are compared, like with like. Context: flush.
 */
#ifndef OTELPROF_MAPPED_FILE_H
#define OTELPROF_MAPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns false, too, if there is no /proc. */
bool mapped_file_is_at(int file, uint64_t address);

#endif
