/* Is the bound for every preload that hooks malloc: it forwards, and does nothing else. Its
 * functions and what they read are in one cache line each, as ours are. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

void *__libc_malloc(size_t size);
void __libc_free(void *object);

enum { CACHE_LINE = 64 };

static struct {
    _Alignas(CACHE_LINE) void *(*malloc)(size_t size);
    void (*free)(void *object);
} next = {__libc_malloc, __libc_free};

__attribute__((constructor)) static void resolve(void) {
    void *found = dlsym(RTLD_NEXT, "malloc");
    memcpy(&next.malloc, &found, sizeof found);
    found = dlsym(RTLD_NEXT, "free");
    memcpy(&next.free, &found, sizeof found);
}

__attribute__((aligned(CACHE_LINE))) void *malloc(size_t size) {
    return next.malloc(size);
}

__attribute__((aligned(CACHE_LINE))) void free(void *object) {
    next.free(object);
}
