/* Which file a descriptor was: programs close what they do not use, and open others in its place.
 * Context: any. */
#ifndef OTELPROF_FILE_IDENTITY_H
#define OTELPROF_FILE_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

struct file_identity {
    bool known; /* false: there was none */
    dev_t device;
    ino_t inode;
};

struct file_identity file_identity_of(int descriptor);

/* Whether `descriptor` is that file. */
bool file_identity_is(const struct file_identity *identity, int descriptor);

#endif
