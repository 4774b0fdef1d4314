/* Forks at the moment when another thread holds the loader's lock (slow_loader.so); the child loads
 * a library and exits. Prints how the child ended.
 *
 * usage: LD_PRELOAD="libotelprof.so slow_loader.so" fork_beside_loader fork|syscall|clone */
#define _GNU_SOURCE
#include "bare_clone.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int child_main(void *unused) {
    (void)unused;
    alarm(10);
    exit(dlopen("libz.so.1", RTLD_NOW) ? 3 : 4);
}

int main(int argc, char **argv) {
    const char *const how = argc > 1 ? argv[1] : "fork";
    const _Atomic int *const held = dlsym(RTLD_DEFAULT, "loader_is_held");
    for (int i = 0; held && i < 20000 && !atomic_load(held); i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    puts(held && atomic_load(held) ? "held" : "never held");
    fflush(stdout);
    const pid_t child = strcmp(how, "fork") == 0 ? fork() : bare_clone(how, child_main);
    if (child == 0)
        child_main(NULL);
    tell_end_of(child);
    return 0;
}
