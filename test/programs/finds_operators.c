/* Looks up functions of C++ and C23 that a C program does not have, operator new among them, and
 * loads a library that brings its own operators.
 *
 * Prints for each function "none", or its name if there is one; then whether a weak reference to
 * operator new, if it is bound at all, leads to an allocation that free() takes; then how many
 * calls the library's operators have had. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The loader binds such a reference to the profiler's operator, before that is removed. */
extern void *weak_new(size_t size) __asm__("_Znwm") __attribute__((weak));

static bool weak_new_allocates(void) {
    char *const object = weak_new ? weak_new(100) : malloc(100);
    const bool allocates = object && malloc_usable_size(object) >= 100;
    free(object);
    return allocates;
}

int main(void) {
    char path[PATH_MAX + 32];
    const ssize_t size = readlink("/proc/self/exe", path, PATH_MAX);
    static const char *const names[] = {"_Znwm", "_ZdlPvm", "_ZnamSt11align_val_tRKSt9nothrow_t",
                                        "free_sized"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf("%s\n", dlsym(RTLD_DEFAULT, names[i]) ? names[i] : "none");
    puts(weak_new_allocates() ? "allocates" : "does not allocate");
    path[size > 0 ? size : 0] = 0;
    strcpy(strrchr(path, '/') + 1, "own_operators.so");
    void *const plugin = dlopen(path, RTLD_NOW);
    int (*count)(void);
    void *const symbol = plugin ? dlsym(plugin, "count_own_calls") : NULL;
    memcpy(&count, &symbol, sizeof count);
    if (!count)
        return 2;
    printf("%d calls of its own\n", count());
    return 0;
}
