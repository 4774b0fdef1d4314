#include "file_identity.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct file_identity file_identity_of(int descriptor) {
    struct stat status;
    /* makes a bare call, because fstat() needs glibc 2.33 */
    if (syscall(SYS_fstat, descriptor, &status) != 0)
        return (struct file_identity){.known = false};
    return (struct file_identity){true, status.st_dev, status.st_ino};
}

bool file_identity_is(const struct file_identity *identity, int descriptor) {
    const struct file_identity present = file_identity_of(descriptor);
    return identity->known && present.known && present.device == identity->device &&
           present.inode == identity->inode;
}
