/* Requests memory from the kernel itself, in every way, and prints the figures that an exact
 * profile must have for maps_memory(): {"allocated": bytes, "live": bytes, "objects": live
 * mappings}. */
#define _GNU_SOURCE
#include "noipa.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MAPPINGS = 100, BYTES = 64 << 10, PAGE = 4096 };

static char *maps[MAPPINGS];

static char *anonymous(size_t size, int protection, int sharing) {
    return mmap(NULL, size, protection, sharing | MAP_ANONYMOUS, -1, 0);
}

NOIPA static void maps_memory(void) {
    for (int i = 0; i < MAPPINGS; i++) {
        maps[i] = anonymous(BYTES, PROT_READ | PROT_WRITE, i == 42 ? MAP_SHARED : MAP_PRIVATE);
        maps[i][0] = (char)i;
    }
    /* reservations and files are not memory of the program */
    munmap(anonymous(1 << 30, PROT_NONE, MAP_PRIVATE), 1 << 30);
    FILE *const file = tmpfile();
    if (file && fputs("text", file) >= 0 && fflush(file) == 0)
        munmap(mmap(NULL, 4, PROT_READ, MAP_PRIVATE, fileno(file), 0), 4);
    if (file)
        fclose(file);
}

int main(void) {
    long live = (long)MAPPINGS * BYTES;
    int objects = MAPPINGS;
    maps_memory();
    for (int i = 0; i < 30; i++, objects--, live -= BYTES)
        munmap(maps[i], BYTES);
    munmap(maps[30], BYTES / 2); /* its beginning is unmapped */
    live -= BYTES / 2;
    maps[31] = mremap(maps[31], BYTES, 8 * BYTES, MREMAP_MAYMOVE);
    live += 7 * BYTES;
    if (mmap(maps[32], BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        maps[32])
        return 1;
    live -= BYTES;
    objects--;
    if (munmap(maps[33] + 1, BYTES) == 0 || maps[34][0] != 34) /* refused: not at a page */
        return 1;
    munmap(maps[35], 1); /* a page */
    munmap(maps[35] + PAGE, BYTES - PAGE);
    mmap(maps[36], PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    live -= BYTES + PAGE;
    objects--;
    if (mremap(maps[37], BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, maps[38]) != maps[38])
        return 1; /* two become one */
    live -= BYTES;
    objects--;
    if (mmap(maps[39], BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED, -1, 0) != MAP_FAILED)
        return 1;                                                  /* refused: no file */
    maps[40] = mremap(maps[40], BYTES / 2, BYTES, MREMAP_MAYMOVE); /* the other half stays */
    live += BYTES / 2;
    objects++;
    mremap(maps[41], BYTES / 2, PAGE, 0); /* likewise, behind a hole */
    live -= BYTES / 2 - PAGE;
    objects++;
    if (mremap(maps[42], 0, BYTES, MREMAP_MAYMOVE) == MAP_FAILED)
        return 1; /* shared memory at a second place: no more memory than before */
    munmap(maps[42], BYTES);
    live -= BYTES;
    objects--;
    munmap(maps[43] + BYTES / 2, BYTES / 2); /* its end is unmapped, as for an alignment */
    munmap(maps[43], BYTES / 2);
    live -= BYTES;
    objects--;
    printf("{\"allocated\": %ld, \"live\": %ld, \"objects\": %d}\n", (long)MAPPINGS * BYTES, live,
           objects);
    return 0;
}
