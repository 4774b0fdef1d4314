/* The functions behind ours: what the program would have called without us.
 *
 * Resolved once with dlsym(RTLD_NEXT), which respects every other preload: an allocator loaded
 * after us is what we forward to. Never `__libc_malloc`: a program may bring another allocator.
 */
#ifndef OTELPROF_NEXT_H
#define OTELPROF_NEXT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct next_allocator {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
};

/* Resolves everything. false: the program's malloc is not ours (it brings its own, or we were not
 * preloaded), so no allocation is seen. Context: calm, at start; idempotent. */
bool next_resolve(void);

/* sigaction() as the C library has it. Context: any. Async-signal-safe: yes once resolved. */
int next_sigaction(int number, const struct sigaction *action, struct sigaction *old);

/* pthread_create() and dlclose() likewise. Context: calm. */
int next_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*start)(void *),
                        void *argument);
int next_dlclose(void *handle);

#endif
