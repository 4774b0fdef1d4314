#include "origin.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void origin_remember(struct origin *origin) {
    struct stat status;
    *origin = (struct origin){.folder = ""};
    /* the system call: libc's function falls back on searching folders, with malloc */
    const long size = syscall(SYS_getcwd, origin->folder, sizeof origin->folder);
    if (size <= 0 || origin->folder[0] != '/') /* "(unreachable)..." */
        origin->folder[0] = 0;
    if (fstat(STDOUT_FILENO, &status) != 0)
        return;
    origin->output_device = status.st_dev;
    origin->output_inode = status.st_ino;
    origin->output_usable = true;
}

bool origin_output_is_ours(const struct origin *origin) {
    struct stat status;
    return origin->output_usable && fstat(STDOUT_FILENO, &status) == 0 &&
           status.st_dev == origin->output_device && status.st_ino == origin->output_inode;
}
