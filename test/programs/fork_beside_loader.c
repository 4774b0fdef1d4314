/* Forks at the moment when another thread holds the loader's lock (slow_loader.so); the child loads
 * a library. Prints what became of it.
 *
 * usage: LD_PRELOAD="libotelprof.so slow_loader.so" fork_beside_loader */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    int status;
    const _Atomic int *const held = dlsym(RTLD_DEFAULT, "loader_is_held");
    for (int i = 0; held && i < 20000 && !atomic_load(held); i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    puts(held && atomic_load(held) ? "held" : "never held");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(dlopen("libz.so.1", RTLD_NOW) ? 3 : 4);
    }
    waitpid(child, &status, 0);
    printf("%s %d\n", WIFEXITED(status) ? "ended with" : "killed by",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 0;
}
