/* Has two threads that call unshare for a user namespace again and again, which the kernel refuses;
 * each call suspends the profiler's helper and resumes it. Meanwhile main forks. Prints how many
 * children ended as they should.
 *
 * usage: unshares_beside CHILDREN */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic int stop;

static void *unshares(void *unused) {
    while (!atomic_load(&stop))
        (void)unshare(CLONE_NEWUSER);
    return unused;
}

static void works(void) {
    for (clock_t end = clock() + CLOCKS_PER_SEC / 20; clock() < end;) {
        void *volatile block = malloc(100000);
        free(block);
    }
}

int main(int argc, char **argv) {
    pthread_t ids[2];
    int fine = 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&ids[i], NULL, unshares, NULL);
    for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 1); i++) {
        int status;
        const pid_t child = fork();
        if (child == 0) {
            works();
            exit(3);
        }
        waitpid(child, &status, 0);
        fine += WIFEXITED(status) && WEXITSTATUS(status) == 3;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(ids[i], NULL);
    printf("%d\n", fine);
    return 0;
}
