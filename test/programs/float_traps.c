// flags: -lm
/* Checks the floating-point exceptions that are raised, or has them trap: its calls into the
 * profiler raise none.
 *
 * usage: float_traps flags|traps
 *
 * Prints "ok". */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocate(void) {
    for (int i = 0; i < 100; i++) {
        void *volatile block = malloc(100000);
        block = realloc(block, 1 << 20);
        free(block);
    }
}

static void *thread_main(void *unused) {
    allocate();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    feclearexcept(FE_ALL_EXCEPT);
    if (argc > 1 && strcmp(argv[1], "traps") == 0)
        feenableexcept(FE_ALL_EXCEPT);
    allocate();
    if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    const pid_t child = fork(); /* its helper starts late, with this thread's traps */
    allocate();
    if (fetestexcept(FE_ALL_EXCEPT))
        return 2;
    if (child == 0)
        exit(0);
    int status;
    waitpid(child, &status, 0);
    if (status)
        return 3;
    puts("ok");
    return 0;
}
