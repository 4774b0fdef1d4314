/* Looks up functions of C++ and C23 that a C program does not have, operator new among them, and
 * loads a library that brings its own operators.
 *
 * Prints for each function "none", or its name if there is one; then how many calls the library's
 * operators have had. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    char path[PATH_MAX + 32];
    const ssize_t size = readlink("/proc/self/exe", path, PATH_MAX);
    static const char *const names[] = {"_Znwm", "_ZdlPvm", "_ZnamSt11align_val_tRKSt9nothrow_t",
                                        "free_sized"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf("%s\n", dlsym(RTLD_DEFAULT, names[i]) ? names[i] : "none");
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
