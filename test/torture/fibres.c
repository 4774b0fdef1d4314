/* Runs makecontext fibres on small and on big stacks, each between two pages that cannot be
 * accessed. */
#include "torture.h"

#include <sys/mman.h>
#include <ucontext.h>

enum { FIBRES = 6, SMALL = 16 << 10, BIG = 256 << 10, PAGE = 4096, DEPTH = 12 };

struct fibre {
    ucontext_t context;
    ucontext_t *back;
    uint64_t turns;
};

WORK(work_in_a_fibre)

NOIPA static void deeper(struct fibre *fibre, int depth) {
    volatile char room[400];
    room[depth] = (char)depth;
    if (depth == 0) {
        work_in_a_fibre(20);
        swapcontext(&fibre->context, fibre->back);
        work_in_a_fibre(20);
    } else
        deeper(fibre, depth - 1);
    check(room[depth] == (char)depth, "a fibre's stack");
}

static void fibre_main(unsigned low, unsigned high) {
    struct fibre *const fibre = (struct fibre *)((uintptr_t)high << 32 | low);
    for (;;) {
        deeper(fibre, DEPTH);
        void *volatile block = malloc(500);
        free(block);
        fibre->turns++;
        swapcontext(&fibre->context, fibre->back);
    }
}

static void make(struct fibre *fibre, ucontext_t *back, size_t size) {
    char *const memory = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED && mprotect(memory + PAGE, size, PROT_READ | PROT_WRITE) == 0,
          "a fibre's stack is mapped");
    fibre->back = back;
    getcontext(&fibre->context);
    fibre->context.uc_stack.ss_sp = memory + PAGE;
    fibre->context.uc_stack.ss_size = size;
    fibre->context.uc_link = back;
    makecontext(&fibre->context, (void (*)(void))fibre_main, 2, (unsigned)(uintptr_t)fibre,
                (unsigned)((uintptr_t)fibre >> 32));
}

static void *torture(void *unused) {
    struct fibre fibres[FIBRES] = {0};
    ucontext_t here;
    for (int i = 0; i < FIBRES; i++)
        make(&fibres[i], &here, i % 2 ? SMALL : BIG);
    uint64_t switches = 0;
    while (time_left())
        swapcontext(&here, &fibres[switches++ % FIBRES].context);
    uint64_t turns = 0;
    for (int i = 0; i < FIBRES; i++)
        turns += fibres[i].turns;
    check(turns * 2 <= switches && turns * 2 + 2 * FIBRES >= switches, "the turns of all fibres");
    return unused;
}

int main(int argc, char **argv) {
    torture_begin(argc, argv);
    run_threads(torture, THREADS);
    SHARE(work_in_a_fibre);
    return torture_end();
}
