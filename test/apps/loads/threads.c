/* Runs threads that allocate, then the gate: for sanitizers, musl and the debuggers. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 400000 };

static void *work(void *arg) {
    unsigned long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char *const text = malloc(16 + (size_t)(i % 200));
        snprintf(text, 16, "%d", i);
        sum += strlen(text);
        free(text);
    }
    *(unsigned long *)arg = sum;
    return NULL;
}

static volatile sig_atomic_t hits;

static void on_signal(int number) {
    hits += number != 0;
}

int main(void) {
    pthread_t threads[THREADS];
    unsigned long sums[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &sums[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    char byte;
    const int gate = open("gate", O_RDONLY);
    if (gate < 0 || read(gate, &byte, 1) != 1)
        perror("gate");
    close(gate);
    const pid_t child = fork();
    if (child == 0)
        _exit(3);
    int status = 0;
    waitpid(child, &status, 0);
    printf("%lu %lu %d %d\n", sums[0], sums[THREADS - 1], (int)hits, WEXITSTATUS(status));
    return 4;
}
