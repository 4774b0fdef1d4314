/* Has threads that share one alternate signal stack, as varnishd's do: the stack is for the report
 * of a crash, and no signal is ever delivered on it otherwise.
 *
 * usage: shared_signal_stack all|some
 *
 * all: every thread has the same. some: the main thread has one of its own before.
 * Prints "ok" if each thread has come to the same sum, by arithmetic that is in registers all the
 * time; otherwise the program exits with 1. */
#include "cpu_sample.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 8, ROOM = 1 << 16, ROUND = 200000, CPU_MS = 50 };

static stack_t shared;
static pthread_barrier_t all_are_there;

NOIPA static uint64_t sums_up(uint64_t seed) {
    uint64_t a = seed, b = seed ^ 0x5555, c = ~seed, d = seed + 1;
    for (int i = 0; i < ROUND; i++) {
        a = a * 6364136223846793005u + b;
        b ^= a >> 17;
        c += b * 31;
        d = (d << 7 | d >> 57) ^ c;
    }
    TAKE_CPU_SAMPLE();
    return a ^ b ^ c ^ d;
}

static void *works(void *wrong) {
    pthread_barrier_wait(&all_are_there); /* all reach the stack at once */
    if (sigaltstack(&shared, NULL) != 0)
        return wrong;
    const uint64_t first = sums_up(1);
    while (cpu_now() < CPU_MS * NS_PER_MS)
        if (sums_up(1) != first)
            return wrong;
    return (void *)(uintptr_t)first;
}

static stack_t new_stack(void) {
    void *const room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return (stack_t){.ss_sp = room, .ss_size = ROOM};
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    void *sum, *first = NULL;
    shared = new_stack();
    pthread_barrier_init(&all_are_there, NULL, THREADS);
    if (argc > 1 && strcmp(argv[1], "some") == 0) {
        const stack_t own = new_stack();
        sigaltstack(&own, NULL);
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, works, NULL) != 0)
            return 2;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &sum);
        if (!sum || (first && sum != first))
            return 1;
        first = sum;
    }
    puts("ok");
    return 0;
}
