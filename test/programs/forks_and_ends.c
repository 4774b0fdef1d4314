/* Waits until the helper is inside of a library for good (stuck_reader.so), forks twenty children,
 * and ends. Prints its longest wait, in milliseconds: while it forked, and at its end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 20, CHILD_STATUS = 7 };

static _Atomic long *longest;

static __attribute__((destructor)) void say_end(void) {
    if (longest)
        printf("end %ld\n", atomic_load(longest));
}

int main(void) {
    const _Atomic int *const stuck = dlsym(RTLD_DEFAULT, "reader_is_stuck");
    int children = 0;
    int status = -1;
    longest = dlsym(RTLD_DEFAULT, "longest_wait_ms");
    while (stuck && !atomic_load(stuck))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    atomic_store(longest, 0);
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        if (child == 0)
            _exit(CHILD_STATUS);
        children += waitpid(child, &status, 0) == child && WEXITSTATUS(status) == CHILD_STATUS;
    }
    printf("%d children\nfork %ld\n", children, atomic_load(longest));
    fflush(stdout);
    atomic_store(longest, 0);
    return 0;
}
