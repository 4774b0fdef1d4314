/* Does a little of everything that the profiler takes part in, and prints the results: threads,
 * memory, fork, a library that comes and goes, signals, errno, descriptors. Output and
 * status are the same as without the profiler, whichever of the profiler's own calls fails.
 *
 * usage: victim MILLISECONDS [short]
 *
 * MILLISECONDS of CPU time are used in each of main, two threads and one child. "short": memory may
 * be so short that glibc itself sets errno in a malloc that succeeds.
 */
/* flags: -fno-optimize-sibling-calls -ldl */
#define _GNU_SOURCE
#include "../programs/cpu_work.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, BLOCKS = 64, LARGEST = 40000, ERRNO_KEPT = 77 };

static uint64_t milliseconds;
static bool memory_is_short;
static volatile sig_atomic_t signals_seen;

static void burn(void) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

/* Allocates, fills, moves and checks blocks. Returns 0 if all content was kept and errno stayed
 * unchanged, 1000 or 2000 if memory was refused, and otherwise the number of faults. */
static int allocate(void) {
    unsigned char *blocks[BLOCKS];
    int wrong = 0;
    errno = ERRNO_KEPT;
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t size = 1 + (i * 7919) % LARGEST;
        blocks[i] = i % 2 ? malloc(size) : calloc(1, size);
        if (!blocks[i])
            return 1000;
        memset(blocks[i], (int)i, size);
    }
    for (size_t i = 0; i < BLOCKS; i += 3) {
        blocks[i] = realloc(blocks[i], 2 * LARGEST);
        if (!blocks[i])
            return 2000;
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        wrong += blocks[i][0] != i;
        free(blocks[i]);
    }
    return wrong + (errno != ERRNO_KEPT && !memory_is_short);
}

static void *thread_main(void *number) {
    int wrong = allocate();
    burn();
    wrong += allocate();
    return (char *)number + wrong;
}

static int run_threads(void) {
    pthread_t threads[THREADS];
    int sum = 0;
    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, thread_main, (void *)(i + 1)) != 0)
            return -1;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (int)(intptr_t)result;
    }
    return sum;
}

/* Runs a child that ends by exit, and one that ends by _exit. */
static void run_children(void) {
    for (int by_exit = 0; by_exit < 2; by_exit++) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0) {
            const int wrong = allocate();
            if (!by_exit)
                _exit(4 + wrong);
            burn();
            exit(5 + wrong + allocate());
        }
        if (child > 0)
            waitpid(child, &status, 0);
        printf("child %s %x\n", by_exit ? "exits" : "leaves", (unsigned)status);
        fflush(stdout);
    }
}

static double ask_library(void) {
    void *const library = dlopen("libm.so.6", RTLD_NOW);
    void *const found = library ? dlsym(library, "cbrt") : NULL;
    double (*cube_root)(double);
    if (!found)
        return -1;
    memcpy(&cube_root, &found, sizeof found);
    const double result = cube_root(27);
    dlclose(library);
    return result;
}

static void on_signal(int number) {
    signals_seen += number == SIGUSR1;
}

static int ask_signals(void) {
    const struct sigaction action = {.sa_handler = on_signal};
    struct sigaction profiling;
    sigset_t blocked;
    if (sigaction(SIGUSR1, &action, NULL) != 0 || sigaction(SIGPROF, NULL, &profiling) != 0)
        return -1;
    raise(SIGUSR1);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number < 32; number++)
        if (sigismember(&blocked, number))
            return -2;
    return signals_seen + (profiling.sa_handler != SIG_DFL);
}

static int read_zero(void) {
    char byte = 1;
    const int file = open("/dev/zero", O_RDONLY);
    if (file < 0 || read(file, &byte, 1) != 1 || close(file) != 0)
        return -1;
    return byte;
}

static void at_exit(void) {
    printf("exit handler, memory %d\n", allocate());
}

int main(int argc, char **argv) {
    milliseconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
    memory_is_short = argc > 2;
    atexit(at_exit);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("memory %d\n", allocate());
    printf("signals %d\n", ask_signals());
    printf("threads %d\n", run_threads());
    printf("library %g\n", ask_library());
    run_children();
    burn();
    printf("memory %d\n", allocate());
    printf("descriptor %d\n", read_zero());
    return 7;
}
