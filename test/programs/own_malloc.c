// flags: -fno-builtin
/* Defines malloc, calloc, realloc and free, and no other function of the family. Prints "ok". */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(16) char pool[8 << 20];
static size_t used;

void *malloc(size_t size) {
    size_t *const block = (size_t *)(void *)(pool + used);
    used += (size + 31) / 16 * 16;
    if (used > sizeof pool)
        abort();
    *block = size;
    return block + 2;
}

void free(void *block) {
    (void)block;
}

void *calloc(size_t count, size_t size) {
    return malloc(count * size);
}

void *realloc(void *block, size_t size) {
    void *const moved = malloc(size);
    const size_t before = block ? ((size_t *)block)[-2] : 0;
    return block ? memcpy(moved, block, before < size ? before : size) : moved;
}

static int is_aligned(const void *block) {
    return block && (uintptr_t)block % 64 == 0;
}

int main(void) {
    void *block = NULL;
    if (posix_memalign(&block, 64, 100) != 0 || !is_aligned(block) ||
        !is_aligned(aligned_alloc(64, 128)) || !is_aligned(memalign(64, 100)) ||
        !is_aligned(valloc(100)) || !is_aligned(pvalloc(100)) || !reallocarray(malloc(10), 30, 10))
        return 1;
    puts("ok");
    return 0;
}
