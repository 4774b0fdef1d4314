/* Forks while another thread is inside the loader, whose lock the child inherits held: a thread
 * that loads a library there waits for ever. The child works for so many milliseconds, then forks
 * many times.
 *
 * usage: fork_under_lock MILLISECONDS FORKS   (prints the number of forks) */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t inside;

static int stay(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    sem_post(&inside);
    for (;;)
        pause();
    return 0;
}

static void *enter_loader(void *unused) {
    dl_iterate_phdr(stay, NULL);
    return unused;
}

static void work(uint64_t milliseconds) {
    const uint64_t end = cpu_now() + milliseconds * NS_PER_MS;
    while (cpu_now() < end) {
        WORK_FOR(30 * NS_PER_US);
        void *volatile block = malloc(10000);
        free(block);
    }
}

static int fork_often(int forks) {
    int done = 0;
    for (int i = 0; i < forks; i++) {
        const pid_t child = fork();
        if (child == 0)
            raise(SIGKILL);
        done += child > 0 && waitpid(child, NULL, 0) == child;
    }
    return done;
}

int main(int argc, char **argv) {
    pthread_t id;
    if (argc != 3 || sem_init(&inside, 0, 0) != 0 ||
        pthread_create(&id, NULL, enter_loader, NULL) != 0)
        return 1;
    sem_wait(&inside);
    const pid_t child = fork();
    if (child == 0) {
        work(strtoull(argv[1], NULL, 10));
        printf("%d\n", fork_often(atoi(argv[2])));
        fflush(stdout);
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
    raise(SIGKILL); /* every other end needs the loader */
}
