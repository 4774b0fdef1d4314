/* Runs a thread that inherits a mask with every signal blocked, as liblzma, GLib and the JVM start
 * theirs; the thread burns CPU and is still there when the process ends. Another thread blocks all
 * signals itself. Prints the mask that each finds, then what each burned. */
#include "cpu_sample.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int done;

SAMPLED_BURNER(burn_inheriting, 40)
SAMPLED_BURNER(burn_blocking, 40)

static int count_blocked(void) {
    sigset_t now;
    int count = 0;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    for (int i = 1; i < 32; i++)
        count += i != SIGPROF && sigismember(&now, i);
    return count;
}

static void *inheriting(void *unused) {
    printf("inheriting: %d blocked\n", count_blocked());
    burn_inheriting();
    atomic_fetch_add(&done, 1);
    for (;;)
        pause();
    return unused;
}

static void *blocking(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    printf("blocking: %d blocked\n", count_blocked());
    burn_blocking();
    atomic_fetch_add(&done, 1);
    for (;;)
        pause();
    return unused;
}

int main(void) {
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_create(&thread, NULL, inheriting, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (atomic_load(&done) < 1)
        usleep(10000);
    pthread_create(&thread, NULL, blocking, NULL);
    while (atomic_load(&done) < 2)
        usleep(10000);
    return 0;
}
