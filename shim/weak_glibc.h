/* Makes references to names that only glibc has, or only some versions of it, acceptable to every
 * loader. The Makefile includes it before every file of libotelprof.so.
 *
 * A preload that is set for a container also reaches programs of other C libraries and of older
 * glibc. Their loader ends the program unless it finds every name that the profiler refers to, in
 * the version that the profiler requests. So names that musl lacks are weak. Names that moved into
 * libc.so.6 with glibc 2.32 to 2.34 are requested in the version that they had in libpthread and
 * libdl, which libc.so.6 has kept, and are weak, because older programs may have neither library.
 * If one of these is missing, the constructor stops (libc_is_complete) and the hooks only forward.
 * test/integration/test_objects.py checks that the lists are complete.
 */
#ifndef OTELPROF_WEAK_GLIBC_H
#define OTELPROF_WEAK_GLIBC_H

#include "arch_glibc.h"

#include <stdbool.h>

/* Declares a name as weak by assembly, because the compiler or libc's macros make most of the
 * references. */
#define WEAK(name) __asm__(".weak " #name)
#define WEAK_OF_VERSION(name, version)                                                             \
    __asm__(".symver " #name "," #name "@GLIBC_" #version "\n.weak " #name)

WEAK(__memcpy_chk);
WEAK(__register_atfork);
WEAK(__cxa_at_quick_exit);
WEAK(gnu_get_libc_version);
ARCH_MOVED_INTO_LIBC(WEAK_OF_VERSION)
#undef WEAK
#undef WEAK_OF_VERSION

const char *gnu_get_libc_version(void) __attribute__((weak));
void *dlsym(void *, const char *) __attribute__((weak));
int pthread_join(unsigned long, void **) __attribute__((weak));

/* Returns true if libc has all these names: false on musl, and on glibc before 2.34 in a program
 * without libdl or libpthread. */
static inline bool libc_is_complete(void) {
    return gnu_get_libc_version && dlsym && pthread_join;
}

#endif
