/* Is preloaded: a syscall() that makes mmap, munmap and mremap by their functions and refuses
 * prctl, as torsocks' does. */
#define _GNU_SOURCE
#include "bare_call.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...) {
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_mmap)
        return (long)mmap((void *)a[0], (size_t)a[1], (int)a[2], (int)a[3], (int)a[4], a[5]);
    if (number == SYS_munmap)
        return munmap((void *)a[0], (size_t)a[1]);
    if (number == SYS_mremap)
        return (long)mremap((void *)a[0], (size_t)a[1], (size_t)a[2], (int)a[3], (void *)a[4]);
    if (number == SYS_prctl) {
        errno = ENOSYS;
        return -1;
    }
    return bare_syscall_of(number, a);
}
