/* Stands for a sandbox in which no memory changes its protection. */
#include <errno.h>
#include <stddef.h>

__attribute__((visibility("default"))) int mprotect(void *address, size_t size, int protection) {
    (void)address;
    (void)size;
    (void)protection;
    errno = EPERM;
    return -1;
}
