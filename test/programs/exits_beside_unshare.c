/* A thread calls unshare for a user namespace, which suspends the profiler's helper for the time of
 * the call; meanwhile the process begins to exit. An exit handler, which lasts longer than the
 * call, prints how many threads there are: the two of the program's, and no helper that has come
 * back.
 *
 * usage: LD_PRELOAD="libotelprof.so slow_unshare.so" exits_beside_unshare */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void wait_for(long milliseconds) {
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

static void *unshares(void *unused) {
    (void)unshare(CLONE_NEWUSER); /* refused: there are two threads */
    pause();
    return unused;
}

static void count_threads(void) {
    int count = 0;
    wait_for(1000);
    DIR *const tasks = opendir("/proc/self/task");
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    printf("%d threads\n", count);
}

int main(void) {
    pthread_t thread;
    atexit(count_threads);
    pthread_create(&thread, NULL, unshares, NULL);
    wait_for(200);
    return 0;
}
