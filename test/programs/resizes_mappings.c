/* Makes mappings larger and smaller, and keeps them. Prints how many bytes of them are live at the
 * end, which is also the most at any time. */
#define _GNU_SOURCE
#include "noipa.h"

#include <stdio.h>
#include <sys/mman.h>

enum { MAPPINGS = 20, BYTES = 1 << 20, LARGER = 8 };

NOIPA static char *maps(size_t size) {
    char *const memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory[size - 1] = 1; /* keeps the call to mmap from being a tail call */
    return memory;
}

int main(void) {
    long live = 0;
    for (int i = 0; i < MAPPINGS; i++, live += BYTES)
        munmap(maps((size_t)2 * BYTES), BYTES); /* the mapping's beginning is unmapped */
    for (int i = 0; i < MAPPINGS; i++, live += (long)LARGER * BYTES)
        if (mremap(maps(BYTES), BYTES, (size_t)LARGER * BYTES, MREMAP_MAYMOVE) == MAP_FAILED)
            return 1;
    printf("%ld\n", live);
    return 0;
}
