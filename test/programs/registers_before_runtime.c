/* Registers unwind tables as the start files of old compilers do: by a name that may be undefined.
 * Then it loads libgcc_s.so.1, and removes the tables. Prints whether the removal found them.
 */
#include <dlfcn.h>
#include <stdio.h>

static const int nothing[2] = {1, 0}; /* no table, but not an empty one either */
static char object[64];

int main(void) {
    void (*registers)(const void *, void *);
    void *(*removes)(const void *);
    *(void **)&registers = dlsym(RTLD_DEFAULT, "__register_frame_info");
    *(void **)&removes = dlsym(RTLD_DEFAULT, "__deregister_frame_info");
    if (registers)
        registers(nothing, object);
    if (!dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_GLOBAL))
        puts("no libgcc_s.so.1");
    const void *const removed = registers ? removes(nothing) : NULL;
    puts(removed ? "somebody knew of it" : "nobody knew of it");
    return 0;
}
