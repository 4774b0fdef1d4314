/* A thread calls unshare for a user namespace, before which the profiler's helper ends, and after
 * which it should start again; one and a half seconds later main returns.
 *
 * usage: LD_PRELOAD="libotelprof.so no_second_helper.so" exits_without_helper */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void *unshares(void *unused) {
    (void)unshare(CLONE_NEWUSER); /* refused: there are two threads */
    pause();
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, unshares, NULL) != 0)
        return 1;
    nanosleep(&(struct timespec){1, 500000000}, NULL);
    puts("ends");
    return 0;
}
