/* Included in front of every file of libotelprof.so (Makefile): what only glibc has, or only glibc
 * of a certain age, is referred to so that every loader puts up with it.
 *
 * A preload set for a container, or carried from one to the next, reaches programs of other C
 * libraries and of older glibc too. Their loader must find all that we refer to, in the version
 * that we ask for, or it ends the program. So what musl lacks is weak; what moved into libc.so.6
 * with glibc 2.32 to 2.34 is asked for in the version that it had in libpthread and libdl, which
 * libc.so.6 has kept, and is weak, because older programs may have neither library; and where one
 * of these is missing the constructor goes no further (libc_is_complete) and the hooks only
 * forward. That the lists are complete is held by test/integration/test_objects.py.
 */
#ifndef OTELPROF_WEAK_GLIBC_H
#define OTELPROF_WEAK_GLIBC_H

#include "arch_glibc.h"

#include <stdbool.h>

/* In assembly, because most are referred to by the compiler or by libc's macros. */
#define WEAK(name) __asm__(".weak " #name)
#define WEAK_OF_VERSION(name, version)                                                             \
    __asm__(".symver " #name "," #name "@GLIBC_" #version "\n.weak " #name)

WEAK(__memcpy_chk);
WEAK(__longjmp_chk);
WEAK(__register_atfork);
WEAK(__cxa_at_quick_exit);
WEAK(gnu_get_libc_version);
ARCH_MOVED_INTO_LIBC(WEAK_OF_VERSION)
#undef WEAK
#undef WEAK_OF_VERSION

const char *gnu_get_libc_version(void) __attribute__((weak));
void *dlsym(void *, const char *) __attribute__((weak));
int pthread_join(unsigned long, void **) __attribute__((weak));

/* false: musl, or glibc before 2.34 in a program without libdl or libpthread. */
static inline bool libc_is_complete(void) {
    return gnu_get_libc_version && dlsym && pthread_join;
}

#endif
