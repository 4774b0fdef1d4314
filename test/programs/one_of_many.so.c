/* Is a library of which a test makes many: it replaces the digits in the name of work_of_000() by
 * the library's number. */
#include "cpu_sample.h"

#include <stdint.h>
#include <stdlib.h>

char one_of_many_room[256 << 10]; /* an unloaded library leaves room for others */

__attribute__((visibility("default"))) void *one_of_many(int milliseconds, int blocks);

/* Burns so much CPU time and returns a list of `blocks` blocks that stay. Is local, so that the
 * loader never searches for its name. */
NOIPA static void *work_of_000(int milliseconds, int blocks) {
    void **list = NULL;
    WORK_FOR((uint64_t)milliseconds * NS_PER_MS);
    TAKE_CPU_SAMPLE();
    for (int i = 0; i < blocks; i++) {
        void **const block = malloc(1024);
        *block = list;
        list = block;
    }
    return list;
}

void *one_of_many(int milliseconds, int blocks) {
    void *const list = work_of_000(milliseconds, blocks);
    __asm__ volatile(""); /* prevents a jump instead of the call */
    return list;
}
