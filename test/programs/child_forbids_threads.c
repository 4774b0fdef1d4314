/* Forks a child that forbids itself to create threads, on pain of death, then works and allocates.
 * Says how the child has ended. */
#define _GNU_SOURCE
#include "forbid_call.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20000, BYTES = 4000 };

static void allocate(void) {
    for (int i = 0; i < ROUNDS; i++) {
        volatile char *const block = malloc(BYTES);
        block[0] = 1;
        free((void *)block);
    }
}

int main(void) {
    int status;
    const pid_t child = fork();
    if (child == 0) {
        forbid_call(SYS_clone3);
        allocate();
        exit(7);
    }
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    return 0;
}
