/* Reserves the low memory before the profiler starts, as Chromium does. */
#include <stdlib.h>
#include <sys/mman.h>

__attribute__((constructor)) static void reserve(void) {
    void *const low = (void *)0x10000;
    if (mmap(low, 0x80000000, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != low)
        abort();
}
