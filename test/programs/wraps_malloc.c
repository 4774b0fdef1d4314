// flags: -rdynamic -fno-builtin
/* Defines a malloc that counts, and calls the next; calloc and realloc are those of another object.
 * Prints "ok".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int calls;

void *malloc(size_t size) {
    static void *(*next)(size_t);
    if (!next) {
        void *const found = dlsym(RTLD_NEXT, "malloc");
        memcpy(&next, &found, sizeof next);
    }
    calls++;
    return next(size);
}

int main(void) {
    void *const first = malloc(100);
    void *const second = calloc(10, 10);
    void *const third = realloc(first, 1 << 20);
    if (!second || !third || calls == 0)
        return 1;
    free(second);
    free(third);
    puts("ok");
    return 0;
}
