/* Is preloaded behind the profiler: when its exporter walks the list of loaded objects, the
 * loader's lock is held for a fifth of a second, and loader_is_held is set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

typedef int visitor(struct dl_phdr_info *info, size_t size, void *argument);
typedef int walker(visitor *visit, void *argument);

extern _Atomic int loader_is_held;
_Atomic int loader_is_held;

static int wait_inside(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)info;
    (void)size;
    (void)argument;
    atomic_store(&loader_is_held, 1);
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    return 1;
}

int dl_iterate_phdr(visitor *visit, void *argument) {
    Dl_info caller;
    void *const found = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    walker *walk;
    memcpy(&walk, &found, sizeof walk);
    if (dladdr(__builtin_return_address(0), &caller) &&
        strstr(caller.dli_fname, "libotelprof-flush.so"))
        (void)walk(wait_inside, NULL);
    return walk(visit, argument);
}
