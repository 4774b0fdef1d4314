// flags: -rdynamic
/* Has two threads that wait for each other's mutex for ever, and one that waits for its own. When
 * all of them wait, it requests an export, and ends. Prints the addresses of the three mutexes.
 */
#define _GNU_SOURCE
#include "../../shim/otelprof.h"
#include "flush_timeout.h"

#include "noipa.h"
#include "thread_sleeps.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_have_one;
static _Atomic pid_t ids[3];

/* --- the threads --- */

NOIPA static void wants_right(void) {
    pthread_mutex_lock(&right);
    __asm__ volatile("" : : : "memory");
}

NOIPA static void wants_left(void) {
    pthread_mutex_lock(&left);
    __asm__ volatile("" : : : "memory");
}

NOIPA static void wants_own(void) {
    pthread_mutex_lock(&own);
    __asm__ volatile("" : : : "memory");
}

static void *holds_left(void *arg) {
    prctl(PR_SET_NAME, "holds-left");
    pthread_mutex_lock(&left);
    pthread_barrier_wait(&both_have_one);
    atomic_store(&ids[0], (pid_t)syscall(SYS_gettid));
    wants_right();
    return arg;
}

static void *holds_right(void *arg) {
    prctl(PR_SET_NAME, "holds-right");
    pthread_mutex_lock(&right);
    pthread_barrier_wait(&both_have_one);
    atomic_store(&ids[1], (pid_t)syscall(SYS_gettid));
    wants_left();
    return arg;
}

static void *holds_own(void *arg) {
    prctl(PR_SET_NAME, "holds-own");
    pthread_mutex_lock(&own);
    atomic_store(&ids[2], (pid_t)syscall(SYS_gettid));
    wants_own();
    return arg;
}

/* --- the first thread --- */

int main(void) {
    void *(*const runs[])(void *) = {holds_left, holds_right, holds_own};
    pthread_t thread;
    if (pthread_barrier_init(&both_have_one, NULL, 2) != 0)
        return 1;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, runs[i], NULL) != 0)
            return 1;
    for (int i = 0; i < 3; i++)
        while (!atomic_load(&ids[i]) || !thread_sleeps(atomic_load(&ids[i])))
            usleep(1000);
    printf("0x%lx 0x%lx 0x%lx\n", (unsigned long)&left, (unsigned long)&right, (unsigned long)&own);
    fflush(stdout);
    (void)otelprof_flush(FLUSH_TIMEOUT_MS);
    _exit(0);
}
