/* Forks again and again, each time while the profiler's helper reads the loader's list
 * (slow_iterations.so); each child loads a library. Prints how many children did.
 *
 * usage: LD_PRELOAD="libotelprof.so slow_iterations.so" forks_beside_iterations FORKS */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_LOAD_S = 60 }; /* after which a child counts as stuck */

static int child_main(void) {
    alarm(LONGEST_LOAD_S);
    return dlopen("libz.so.1", RTLD_NOW) ? 3 : 4;
}

int main(int argc, char **argv) {
    const int forks = argc > 1 ? atoi(argv[1]) : 1;
    const _Atomic int *const iterates = dlsym(RTLD_DEFAULT, "helper_iterates");
    int fine = 0;
    for (int i = 0; i < forks; i++) {
        while (iterates && !atomic_load(iterates))
            nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
        const pid_t child = fork();
        int status = 0;
        if (child == 0)
            _exit(child_main());
        fine +=
            waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3;
        if (fine <= i)
            break;
    }
    printf("%d\n", fine);
    return 0;
}
