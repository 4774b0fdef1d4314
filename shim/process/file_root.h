/* Remembers the root directory of the process, and the mount that the root lies on.
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
    /* id of the mount, because inode numbers differ between mounts; 0 before Linux 5.8 */
    uint64_t mount;
};

struct file_root file_root_now(void);

/* Returns whether the calling thread's root is the remembered one; false, too, if one of the two is
 * not known. */
bool file_root_is(const struct file_root *root);

#endif
