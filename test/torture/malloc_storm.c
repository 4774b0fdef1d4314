/* Allocates in every way, passes objects from thread to thread, and checks their contents. */
#define _GNU_SOURCE
#include "torture.h"

#include <string.h>

enum { SLOTS = 512, MAX_BYTES = 8000 };

/* Holds objects. Each begins with its size, and every further byte is the lowest byte of the
 * size. */
static _Atomic(uint8_t *) slots[SLOTS];

WORK(work_beside_malloc)

static void fill(uint8_t *object, size_t size) {
    memcpy(object, &size, sizeof size);
    memset(object + sizeof size, (int)(size & 255), size - sizeof size);
}

static void verify(const uint8_t *object) {
    size_t size;
    memcpy(&size, object, sizeof size);
    check(size <= 2 * MAX_BYTES, "an object's size");
    for (size_t i = sizeof size; i < size; i++)
        check(object[i] == (uint8_t)size, "an object's contents");
}

static uint8_t *make(uint64_t random) {
    const size_t size = 16 + (random >> 20) % MAX_BYTES;
    uint8_t *object = NULL;
    switch (random >> 60) {
    case 0:
        object = calloc(size, 1);
        for (size_t i = 0; i < size; i++)
            check(object[i] == 0, "calloc's zeros");
        break;
    case 1:
        object = aligned_alloc(64, (size + 63) / 64 * 64);
        check(((uintptr_t)object & 63) == 0, "the alignment");
        break;
    case 2:
        check(posix_memalign((void **)&object, 4096, size) == 0, "posix_memalign");
        check(((uintptr_t)object & 4095) == 0, "the page's alignment");
        break;
    case 3:
        object = reallocarray(NULL, size, 1);
        break;
    default:
        object = malloc(size);
    }
    fill(object, size);
    return object;
}

static uint8_t *grow(uint8_t *object) {
    size_t size;
    memcpy(&size, object, sizeof size);
    object = realloc(object, size * 2);
    for (size_t i = sizeof size; i < size; i++)
        check(object[i] == (uint8_t)size, "what realloc kept");
    fill(object, size * 2 > 2 * MAX_BYTES ? 2 * MAX_BYTES : size * 2);
    return object;
}

static void *torture(void *number) {
    uint64_t random = (uint64_t)(intptr_t)number * 77 + 1;
    for (unsigned i = 0; time_left(); i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint8_t *object = make(random);
        if (random >> 50 & 1 && *(size_t *)(void *)object <= MAX_BYTES)
            object = grow(object);
        object = atomic_exchange(&slots[(random >> 33) % SLOTS], object);
        if (object)
            verify(object);
        free(object);
        if (i % 2000 == 0)
            work_beside_malloc(2000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    torture_begin(argc, argv);
    run_threads(torture, THREADS);
    SHARE(work_beside_malloc);
    return torture_end();
}
