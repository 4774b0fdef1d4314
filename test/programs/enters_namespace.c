/* Enters a namespace that only a process with one thread may enter, and works after that.
 *
 * usage: enters_namespace UNSHARED_MS [user|cancelled|mount]
 * user: a new user namespace; cancelled: while the thread is to be cancelled at its next
 * cancellation point, of which the call is none; mount: its own mount namespace, again.
 * Prints what the call said, or "alone". */
#define _GNU_SOURCE
#include "noipa.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile uint64_t sink;

NOIPA static void burns_in_namespace(long milliseconds) {
    struct timespec now;
    long spent;
    do {
        for (int i = 0; i < 10000; i++)
            sink += (uint64_t)i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        spent = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    } while (spent < milliseconds);
}

static int enter(const char *how) {
    if (strcmp(how, "mount") == 0)
        return setns(open("/proc/self/ns/mnt", O_RDONLY), CLONE_NEWNS);
    if (strcmp(how, "cancelled") == 0)
        pthread_cancel(pthread_self());
    const int result = unshare(CLONE_NEWUSER);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return result;
}

int main(int argc, char **argv) {
    puts(enter(argc > 2 ? argv[2] : "user") == 0 ? "alone" : strerror(errno));
    burns_in_namespace(argc > 1 ? atol(argv[1]) : 400);
    return 0;
}
