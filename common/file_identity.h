/* Remembers the identity of the file behind a descriptor: programs close descriptors that they do
 * not use, and later open other files under the same number. Context: any. */
#ifndef OTELPROF_FILE_IDENTITY_H
#define OTELPROF_FILE_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

struct file_identity {
    bool known; /* false: there was no file */
    dev_t device;
    ino_t inode;
};

struct file_identity file_identity_of(int descriptor);

/* Returns whether `descriptor` is that file; false, too, if one of the two is not known. */
bool file_identity_is(const struct file_identity *identity, int descriptor);

#endif
