/* The bound for every preload that hooks malloc: it forwards, and does nothing else. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

void *__libc_malloc(size_t size);
void __libc_free(void *object);

static void *(*next_malloc)(size_t size) = __libc_malloc;
static void (*next_free)(void *object) = __libc_free;

__attribute__((constructor)) static void resolve(void) {
    void *found = dlsym(RTLD_NEXT, "malloc");
    memcpy(&next_malloc, &found, sizeof found);
    found = dlsym(RTLD_NEXT, "free");
    memcpy(&next_free, &found, sizeof found);
}

void *malloc(size_t size) {
    return next_malloc(size);
}

void free(void *object) {
    next_free(object);
}
