/* Is compiled with musl's wrapper by test_traps.py: it does a little of all that we hook, under a C
 * library that the profiler does not know. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void on_signal(int number) {
    seen = number;
}

static void *allocate(void *argument) {
    for (size_t i = 1; i < 1000; i++) {
        char *const block = malloc(i);
        memset(block, 1, i);
        free(block);
    }
    return argument;
}

static void at_end(void) {
    puts("at the end");
}

int main(void) {
    pthread_t thread;
    void *aligned;
    int status;
    atexit(at_end);
    pthread_create(&thread, NULL, allocate, NULL);
    pthread_join(thread, NULL);
    signal(SIGTERM, on_signal);
    raise(SIGTERM);
    const pid_t child = fork();
    if (child == 0) {
        allocate(NULL);
        _exit(3);
    }
    waitpid(child, &status, 0);
    const int refused = posix_memalign(&aligned, 64, 100);
    free(aligned);
    free(realloc(calloc(10, 10), 1000));
    printf("%d %d %d\n", seen, WEXITSTATUS(status), refused);
    return 5;
}
