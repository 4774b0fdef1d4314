/* Ends the process in ends_here() while another thread waits for a lock that the ending thread
 * holds: by exit() or _exit(), or by a signal that interrupts its sleep. */
#define _GNU_SOURCE
#include "thread_sleeps.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t waiter;

__attribute__((noinline)) static void waits_for_lock(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void *waits(void *unused) {
    pthread_setname_np(pthread_self(), "waits");
    atomic_store(&waiter, gettid());
    waits_for_lock();
    return unused;
}

static void *sends_signal(void *unused) {
    pthread_setname_np(pthread_self(), "sends");
    wait_until_it_sleeps(getpid());
    usleep(200000);
    pthread_kill(*(pthread_t *)unused, SIGTERM);
    return unused;
}

__attribute__((noinline)) static void ends_here(const char *end) {
    pthread_t main_thread = pthread_self();
    pthread_t sender;
    if (end[0] == 'e')
        exit(0);
    if (end[0] == '_')
        _exit(0);
    pthread_create(&sender, NULL, sends_signal, &main_thread);
    for (;;)
        pause();
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc != 2)
        return 2;
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, waits, NULL);
    while (!atomic_load(&waiter))
        usleep(200);
    wait_until_it_sleeps(atomic_load(&waiter));
    ends_here(argv[1]);
    return 0;
}
