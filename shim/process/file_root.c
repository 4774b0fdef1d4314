#include "file_root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Reads the root without its mount: used before Linux 4.11, and in sandboxes that refuse the other
 * call. */
static struct file_root without_mount(void) {
    struct stat status;
    if (syscall(SYS_newfstatat, AT_FDCWD, "/", &status, 0) != 0)
        return (struct file_root){.known = false};
    return (struct file_root){.known = true, .device = status.st_dev, .inode = status.st_ino};
}

struct file_root file_root_now(void) {
    struct statx status;
    if (syscall(SYS_statx, AT_FDCWD, "/", AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID, &status) != 0)
        return without_mount();
    return (struct file_root){.known = true,
                              .device = makedev(status.stx_dev_major, status.stx_dev_minor),
                              .inode = status.stx_ino,
                              .mount = status.stx_mask & STATX_MNT_ID ? status.stx_mnt_id : 0};
}

bool file_root_is(const struct file_root *root) {
    const struct file_root now = file_root_now();
    return now.known && root->known && now.device == root->device && now.inode == root->inode &&
           now.mount == root->mount;
}
