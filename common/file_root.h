/* Remembers the root directory of the process, where its paths begin, and the mount that it lies
 * on.
 *
 * A program that changes its root may enter a folder that others can write to. If it runs as root,
 * it must not read a library, or a library's configuration, from a path that was meant for another
 * root. Uses a system call that needs no /proc. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_FILE_ROOT_H
#define OTELPROF_FILE_ROOT_H

#include <stdbool.h>
#include <stdint.h>

struct file_root {
    bool known;
    uint64_t device;
    uint64_t inode;
    uint64_t mount; /* numbers differ between mount namespaces; 0 before Linux 5.8 */
};

struct file_root file_root_now(void);

/* Returns whether the calling thread's root is that one; false also if one of them is not known. */
bool file_root_is(const struct file_root *root);

#endif
