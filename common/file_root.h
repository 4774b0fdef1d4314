/* Where paths lead from: the root of the process, and the mount that it lies on.
 *
 * A program that changes its root may go to a folder that others can write to; and one that runs as
 * root there must not have a library, or a library's configuration, read from a path that was meant
 * for another root. By a system call that needs no /proc. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_FILE_ROOT_H
#define OTELPROF_FILE_ROOT_H

#include <stdbool.h>
#include <stdint.h>

struct file_root {
    bool known;
    uint64_t device;
    uint64_t inode;
    uint64_t mount; /* each mount namespace has other numbers; 0 before Linux 5.8 */
};

struct file_root file_root_now(void);

/* Whether the calling thread's root is that one. false: also where one of them is not known. */
bool file_root_is(const struct file_root *root);

#endif
