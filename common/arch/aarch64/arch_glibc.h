/* Lists functions that moved into libc.so.6 with glibc 2.32 to 2.34, and the versions that they had
 * in libpthread and libdl before. libc.so.6 still has these versions, and weak_glibc.h requests
 * them. On this architecture glibc begins with version 2.17.
 */
#ifndef OTELPROF_ARCH_GLIBC_H
#define OTELPROF_ARCH_GLIBC_H

#define ARCH_MOVED_INTO_LIBC(of)                                                                   \
    of(__pthread_register_cancel, 2.17);                                                           \
    of(__pthread_unregister_cancel, 2.17);                                                         \
    of(__pthread_unwind_next, 2.17);                                                               \
    of(pthread_attr_getstacksize, 2.17);                                                           \
    of(pthread_attr_setstacksize, 2.17);                                                           \
    of(pthread_detach, 2.17);                                                                      \
    of(pthread_getcpuclockid, 2.17);                                                               \
    of(pthread_join, 2.17);                                                                        \
    of(pthread_mutex_trylock, 2.17);                                                               \
    of(dlerror, 2.17);                                                                             \
    of(dlsym, 2.17);

#endif
