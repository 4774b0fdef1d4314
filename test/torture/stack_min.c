/* Runs threads with the smallest possible stack, and the smallest alternate one. */
#define _GNU_SOURCE
#include "torture.h"

#include <limits.h>
#include <signal.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

WORK(work_on_little_stack)

/* Uses an alternate stack of the smallest size, whose lower end is near memory that cannot be
 * accessed, and none in every second round. */
static void *torture(void *unused) {
    const size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ);
    const size_t mapped = (size + PAGE - 1) / PAGE * PAGE;
    char *const memory = mmap(NULL, mapped + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const stack_t stack = {.ss_sp = memory + PAGE, .ss_size = size};
    const stack_t none = {.ss_flags = SS_DISABLE};
    mprotect(memory + PAGE, mapped, PROT_READ | PROT_WRITE);
    for (int i = 0; time_left(); i++) {
        sigaltstack(i % 2 ? &stack : &none, NULL);
        work_on_little_stack(3000);
        void *volatile block = malloc(100);
        free(block);
    }
    sigaltstack(&none, NULL);
    munmap(memory, mapped + PAGE);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    torture_begin(argc, argv);
    pthread_attr_init(&attributes);
    check(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0,
          "the smallest stack");
    for (int i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], &attributes, torture, NULL) == 0, "pthread_create");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    SHARE(work_on_little_stack);
    return torture_end();
}
