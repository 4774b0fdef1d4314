/* A thread forks, and its child ends by the return of that thread's start routine: with the exit
 * handlers, and status 0. fork_in_thread joined: after another thread, which the child joins. */
#include "cpu_sample.h"
#include "forked.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int joined;

static void at_end(void) {
    puts("exit handler");
    fflush(stdout);
}

NOIPA static void *work_of_the_child(void *unused) {
    WORK_FOR(40 * NS_PER_MS);
    TAKE_CPU_SAMPLE();
    return unused;
}

static void *fork_and_wait(void *unused) {
    int status;
    pthread_t id;
    const pid_t child = fork_profiled();
    if (child > 0) {
        waitpid(child, &status, 0);
        printf("child ended with %d\n", status);
    } else if (joined) {
        pthread_create(&id, NULL, work_of_the_child, NULL);
        pthread_join(id, NULL);
    } else {
        work_of_the_child(NULL);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t id;
    joined = argc > 1 && strcmp(argv[1], "joined") == 0;
    atexit(at_end);
    pthread_create(&id, NULL, fork_and_wait, NULL);
    pthread_join(id, NULL);
    return 0;
}
