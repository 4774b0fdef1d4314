// Does the work of each service of the boot test: threads that compute and allocate, a child, a
// line of text.
//
//     work [--live MIB] [--forks]
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 25, CPU_MS = 10, PAUSE_MS = 100, MIB = 1 << 20 };

static void compute(int milliseconds) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const long end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + milliseconds;
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < end)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
}

static void *work(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        char *text = malloc(100000);
        if (text == NULL)
            return "out of memory";
        memset(text, i, 100000);
        compute(CPU_MS);
        free(text);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
    return unused;
}

// Keeps memory in use, all of it written.
static int hold(int mebibytes) {
    for (int i = 0; i < mebibytes; i++) {
        char *block = malloc(MIB);
        if (block == NULL)
            return -1;
        memset(block, i, MIB);
    }
    return 0;
}

// Forks a child that works as its parent did. Returns its status.
static int child(void) {
    const pid_t pid = fork();
    if (pid == 0)
        _exit(work(NULL) != NULL);
    int status = -1;
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--live") == 0 && hold(atoi(argv[2])) != 0)
        return 2;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 3;
    const char *trouble = NULL;
    for (int i = 0; i < THREADS; i++) {
        void *said = NULL;
        pthread_join(threads[i], &said);
        trouble = said != NULL ? said : trouble;
    }
    const int status = child();
    printf("worked: %s, child %d\n", trouble != NULL ? trouble : "well", status);
    return trouble != NULL || status != 0;
}
