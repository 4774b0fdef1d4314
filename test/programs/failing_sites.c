/* Allocates 1,000 bytes at a time, each after an allocation of 64 KiB that fails for its invalid
 * alignment. Prints how many bytes succeeded. */
#include "noipa.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 300000, BYTES = 1000 };

NOIPA static void allocates(void) {
    void *volatile object = malloc(BYTES);
    free(object);
}

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        void *object;
        volatile size_t alignment = 3;
        if (posix_memalign(&object, alignment, 65536) == 0)
            return 1;
        allocates();
    }
    printf("%llu\n", (unsigned long long)ROUNDS * BYTES);
    return 0;
}
