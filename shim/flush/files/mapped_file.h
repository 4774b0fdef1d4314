/* Whether a file is the one that is mapped at an address of this process.
 *
 * /proc/self/maps tells the device and inode of each mapping. On overlayfs and btrfs they differ
 * from what fstat() says of the same file. So one page of the file is mapped for a moment, without
 * any access, and the kernel's two answers are compared, like with like. Context: flush.
 */
#ifndef OTELPROF_MAPPED_FILE_H
#define OTELPROF_MAPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* false, too, where there is no /proc. */
bool mapped_file_is_at(int file, uint64_t address);

#endif
