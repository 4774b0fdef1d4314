/* Makes a child that no fork handler sees. Like any other child it allocates, creates a thread,
 * sets an alternate stack, and ends.
 *
 * usage: bare_child clone|_Fork
 * Prints the child's exit status, which is to be 7. */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

BURNER(works_on, 300)

static void allocate(void) {
    for (int i = 0; i < 100; i++) {
        void *volatile block = malloc(1 << 20);
        free(block);
    }
}

static void *thread_main(void *unused) {
    allocate();
    works_on();
    return unused;
}

static int live(void) {
    static char room[1 << 16];
    const stack_t small = {.ss_sp = room, .ss_size = 2048};
    const stack_t large = {.ss_sp = room, .ss_size = sizeof room};
    pthread_t thread;
    allocate();
    if (sigaltstack(&small, NULL) != 0 || sigaltstack(&large, NULL) != 0 ||
        pthread_create(&thread, NULL, thread_main, NULL) != 0)
        return 1;
    works_on();
    pthread_join(thread, NULL);
    return 7;
}

int main(int argc, char **argv) {
    const int bare = argc > 1 && strcmp(argv[1], "clone") == 0;
    int status;
    pthread_t thread; /* its slot is free when the child creates a thread */
    if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    const pid_t child = bare ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : _Fork();
    if (child == 0)
        _exit(live());
    waitpid(child, &status, 0);
    printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    return 0;
}
