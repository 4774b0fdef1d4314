// flags: -fno-builtin
/* Brings an allocator that was not made for threads, allocates for a while, and prints whether two
 * calls were in it at once. It uses dlsym for other things, as a Lisp does. */
#include "cpu_work.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CLASSES = 40, HEADER = 16, CHUNK = 4 << 20, OBJECTS = 100 };

struct block {
    struct block *next;
    size_t class;
};

static struct block *unused[CLASSES];
static char *fresh;
static char *fresh_end;
static volatile int inside;
static volatile int met;

static void enter(void) {
    met |= inside;
    inside = 1;
}

static struct block *new_block(size_t class) {
    const size_t size = (size_t)1 << class;
    if (size > (size_t)(fresh_end - fresh)) {
        const size_t chunk = size > CHUNK ? size : CHUNK;
        fresh = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        fresh_end = fresh + chunk;
    }
    struct block *const block = (struct block *)(void *)fresh;
    fresh += size;
    block->class = class;
    return block;
}

void *malloc(size_t size) {
    size_t class = 5;
    while (((size_t)1 << class) < size + HEADER)
        class ++;
    enter();
    struct block *block = unused[class];
    if (block)
        unused[class] = block->next;
    else
        block = new_block(class);
    inside = 0;
    return (char *)block + HEADER;
}

static struct block *block_of(void *object) {
    return (struct block *)(void *)((char *)object - HEADER);
}

void free(void *object) {
    if (!object)
        return;
    struct block *const block = block_of(object);
    enter();
    block->next = unused[block->class];
    unused[block->class] = block;
    inside = 0;
}

void *calloc(size_t count, size_t size) {
    return memset(malloc(count * size), 0, count * size);
}

void *realloc(void *object, size_t size) {
    void *const moved = malloc(size);
    const size_t before = object ? ((size_t)1 << block_of(object)->class) - HEADER : 0;
    if (object)
        memcpy(moved, object, before < size ? before : size);
    free(object);
    return moved;
}

int main(void) {
    void *objects[OBJECTS] = {NULL};
    unsigned state = 1;
    const uint64_t end = cpu_now() + 1500 * NS_PER_MS;
    while (cpu_now() < end)
        for (size_t i = 0; i < 1000; i++) {
            state = state * 1103515245 + 12345;
            void **const object = &objects[(state >> 16) % OBJECTS];
            free(*object);
            *object = malloc(state >> 22);
        }
    if (dlsym(NULL, "main_of_another"))
        return 1;
    puts(met ? "two at once" : "one at a time");
    return 0;
}
