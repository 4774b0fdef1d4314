/* Sets its group id over and over: libc interrupts every thread for that, by a signal that no
 * program can block. Prints which signals a handler of SIGPROF blocks, in hexadecimal and in the
 * kernel's form.
 *
 * usage: sets_ids MILLISECONDS
 */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3 };

static _Atomic int stop;

static void *work(void *unused) {
    while (!atomic_load(&stop))
        WORK_FOR(NS_PER_MS);
    return unused;
}

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static unsigned long blocked_in_handler(void) {
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } action = {0}; /* in the kernel's form on x86-64 */
    syscall(SYS_rt_sigaction, SIGPROF, NULL, &action, sizeof action.mask);
    return action.mask;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    const double end = milliseconds() + (argc > 1 ? atof(argv[1]) : 1000);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    while (milliseconds() < end)
        if (setgid(getgid()) != 0)
            return 2;
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%lx\n", blocked_in_handler());
    return 0;
}
