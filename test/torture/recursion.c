/* Recurses four thousand frames deep, with work at the bottom, on the main thread and on others. */
#include "torture.h"

enum { DEPTH = 4000 };

WORK(work_at_the_bottom)

static volatile uint64_t sink;

NOIPA static uint64_t descend(int depth) {
    volatile char room[64];
    room[depth & 63] = (char)depth;
    if (depth == 0)
        work_at_the_bottom(5000);
    else
        sink = descend(depth - 1);
    return (uint64_t)room[depth & 63];
}

static void *torture(void *unused) {
    while (time_left()) {
        void *volatile block = malloc(1000);
        sink = descend(DEPTH);
        free(block);
    }
    return unused;
}

int main(int argc, char **argv) {
    torture_begin(argc, argv);
    pthread_t other;
    check(pthread_create(&other, NOTHING, torture, NOTHING) == 0, "pthread_create");
    torture(NOTHING);
    pthread_join(other, NOTHING);
    SHARE(work_at_the_bottom);
    return torture_end();
}
