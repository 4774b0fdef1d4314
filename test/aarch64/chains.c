/* Uses CPU time in functions with frames of all kinds, for some seconds: `chains SECONDS`.
 *
 * The CPU time is the emulated processor's. Each function's callers are known: test_aarch64.py has
 * the list. */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 40000, THREAD_ROUNDS = 100, BIG_BYTES = 70000, STACK_BYTES = 1 << 17 };
#define PART __attribute__((noinline, noclone))

static volatile uint64_t sink;

PART void leaf(void) {
    uint64_t seed = sink;
    for (int i = 0; i < ROUNDS; i++)
        seed = seed * 6364136223846793005u + 1442695040888963407u;
    sink = seed;
}

PART void calls_leaf(void) {
    leaf();
    sink++;
}

PART void has_big_frame(void) {
    volatile char room[BIG_BYTES];
    room[sink % BIG_BYTES] = 1;
    calls_leaf();
    sink += (uint64_t)room[0];
}

PART void allocates_on_stack(size_t bytes) {
    volatile char *const room = alloca(bytes);
    room[0] = 1;
    calls_leaf();
    sink += (uint64_t)room[0];
}

PART int compares(const void *a, const void *b) {
    leaf();
    return *(const int *)a - *(const int *)b;
}

PART void sorts(void) {
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, compares);
    sink += (uint64_t)numbers[0];
}

PART void handles(int number) {
    calls_leaf();
    sink += (uint64_t)number;
}

PART void raises(void) {
    raise(SIGUSR1);
    sink++;
}

PART void *runs_in_thread(void *unused) {
    for (int i = 0; i < THREAD_ROUNDS; i++)
        calls_leaf();
    return unused;
}

PART void makes_a_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, runs_in_thread, NULL) == 0)
        pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    const stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handles;
    action.sa_flags = SA_ONSTACK;
    if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        return 1;
    do {
        has_big_frame();
        allocates_on_stack(100 + sink % 1000);
        sorts();
        raises();
        makes_a_thread();
    } while ((double)clock() < seconds * CLOCKS_PER_SEC);
    puts("done");
    return 7;
}
