/* Becomes another user by libc's setuid() while another of its threads is too busy to follow: libc
 * has every other thread make the call first, and the calling one last, when all have made it. The
 * busy thread waits for a child of vfork for HELD_MS.
 *
 * usage: slow_setuid BEFORE_MS HELD_MS AFTER_MS
 */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { USER = 65534 };

static _Atomic int begun;

NOIPA static void burns_before(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

NOIPA static void burns_after(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

static void *hold(void *milliseconds) {
    const long held = atol(milliseconds);
    const struct timespec time = {held / 1000, held % 1000 * 1000000};
    atomic_store(&begun, 1);
    if (vfork() == 0) {
        nanosleep(&time, NULL);
        _exit(0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t holder;
    if (argc < 4)
        return 2;
    burns_before(strtoull(argv[1], NULL, 10));
    pthread_create(&holder, NULL, hold, argv[2]);
    while (!atomic_load(&begun))
        usleep(1000);
    usleep(20000);
    if (setuid(USER) != 0)
        perror("setuid");
    burns_after(strtoull(argv[3], NULL, 10));
    pthread_join(holder, NULL);
    return 0;
}
