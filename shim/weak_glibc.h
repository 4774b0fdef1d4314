/* Included in front of every file of libotelprof.so (Makefile): what only glibc has is referred to
 * weakly.
 *
 * A preload set for a container reaches programs of other C libraries too. Their loader must find
 * all that we refer to, or it ends the program; so what musl lacks is weak, and where it is missing
 * the constructor goes no further (is_glibc) and the hooks only forward.
 * That the list is complete is held by test/integration/test_objects.py.
 */
#ifndef OTELPROF_WEAK_GLIBC_H
#define OTELPROF_WEAK_GLIBC_H

#include <stdbool.h>

/* In assembly, because most are referred to by the compiler or by libc's macros. */
__asm__(".weak __memcpy_chk\n.weak __longjmp_chk\n.weak dladdr1\n.weak gnu_get_libc_version\n"
        ".weak __pthread_register_cancel\n.weak __pthread_unregister_cancel\n"
        ".weak __pthread_unwind_next\n.weak __register_atfork\n.weak __cxa_at_quick_exit\n");

const char *gnu_get_libc_version(void) __attribute__((weak));

static inline bool is_glibc(void) {
    return gnu_get_libc_version != 0;
}

#endif
