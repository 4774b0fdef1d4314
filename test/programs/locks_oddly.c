/* Waits for locks in unusual places, and prints the results.
 *
 * usage: locks_oddly results|in_handler|leaves_handler|cancelled|forks_in_wait|in_vfork
 *
 * A thread, the keeper, holds the lock until it sees the first thread wait for it.
 */
#define _GNU_SOURCE
#include "thread_sleeps.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t is_held;
static _Atomic pid_t waiter;
static pthread_t waiting_thread;
static atomic_bool in_handler;
static sigjmp_buf out;

static pid_t own_id(void) {
    return (pid_t)syscall(SYS_gettid);
}

/* Starts the keeper; the wait begins when the keeper holds its lock. */
static pthread_t start_keeper(void *(*keep)(void *)) {
    pthread_t thread;
    atomic_store(&waiter, own_id());
    waiting_thread = pthread_self();
    pthread_barrier_init(&is_held, NULL, 2);
    if (pthread_create(&thread, NULL, keep, NULL) != 0)
        exit(1);
    pthread_barrier_wait(&is_held);
    return thread;
}

static void on_signal(void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
}

/* Keeps a lock for wait_once_more(): a later wait, which nothing that an earlier one has left
 * behind may hinder. */
static void *keep_once(void *arg) {
    pthread_mutex_lock(&inner);
    pthread_barrier_wait(&is_held);
    wait_until_it_sleeps(atomic_load(&waiter));
    pthread_mutex_unlock(&inner);
    return arg;
}

static void wait_once_more(void) {
    const pthread_t keeper = start_keeper(keep_once);
    const int result = pthread_mutex_lock(&inner);
    pthread_mutex_unlock(&inner);
    pthread_join(keeper, NULL);
    printf("once more: %d\n", result);
}

/* --- results --- */

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t c11;
static pthread_mutex_t robust;

static void *keep_all(void *arg) {
    pthread_mutex_lock(&outer);
    pthread_rwlock_wrlock(&rwlock);
    mtx_lock(&c11);
    pthread_mutex_lock(&robust);
    pthread_barrier_wait(&is_held);
    pthread_barrier_wait(&is_held);
    wait_until_it_sleeps(atomic_load(&waiter));
    return arg; /* with all locks held */
}

static void say(const char *name, int result) {
    printf("%s: %d, errno %d\n", name, result, errno);
}

static void results(void) {
    const struct timespec past = {1, 0}, wrong = {1, -1};
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    mtx_init(&c11, mtx_timed);
    const pthread_t keeper = start_keeper(keep_all);
    errno = 77;
    say("timedlock", pthread_mutex_timedlock(&outer, &past));
    say("timedlock, wrong", pthread_mutex_timedlock(&outer, &wrong));
    say("clocklock", pthread_mutex_clocklock(&outer, CLOCK_MONOTONIC, &past));
    say("clocklock, wrong", pthread_mutex_clocklock(&outer, 1000, &past));
    say("mtx_timedlock", mtx_timedlock(&c11, &past));
    say("timedrdlock", pthread_rwlock_timedrdlock(&rwlock, &past));
    say("timedwrlock", pthread_rwlock_timedwrlock(&rwlock, &past));
    say("clockrdlock", pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &past));
    say("clockwrlock", pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &past));
    say("clockwrlock, wrong", pthread_rwlock_clockwrlock(&rwlock, 1000, &past));
    pthread_barrier_wait(&is_held);
    say("its owner dies", pthread_mutex_lock(&robust));
    pthread_join(keeper, NULL);
    pthread_mutex_unlock(&robust);
    say("not recoverable", pthread_mutex_lock(&robust));
}

/* --- handlers that come during a wait --- */

/* Holds two locks: the handler waits for the inner one. */
static void *keep_two_and_signal(void *arg) {
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    pthread_barrier_wait(&is_held);
    wait_until_it_sleeps(atomic_load(&waiter));
    pthread_kill(waiting_thread, SIGUSR1);
    while (!atomic_load(&in_handler))
        usleep(200);
    wait_until_it_sleeps(atomic_load(&waiter));
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
    return arg;
}

static void *keep_and_signal(void *arg) {
    pthread_mutex_lock(&outer);
    pthread_barrier_wait(&is_held);
    wait_until_it_sleeps(atomic_load(&waiter));
    pthread_kill(waiting_thread, SIGUSR1);
    while (!atomic_load(&in_handler))
        usleep(200);
    pthread_mutex_unlock(&outer);
    return arg;
}

static void wait_in_handler(int number) {
    (void)number;
    atomic_store(&in_handler, true);
    pthread_mutex_lock(&inner);
    pthread_mutex_unlock(&inner);
}

static void waits_in_handler(void) {
    on_signal(wait_in_handler);
    const pthread_t keeper = start_keeper(keep_two_and_signal);
    printf("in a handler: %d\n", pthread_mutex_lock(&outer));
    pthread_mutex_unlock(&outer);
    pthread_join(keeper, NULL);
    wait_once_more();
}

static void leave_handler(int number) {
    (void)number;
    atomic_store(&in_handler, true);
    siglongjmp(out, 1);
}

static void leaves_handler(void) {
    on_signal(leave_handler);
    const pthread_t keeper = start_keeper(keep_and_signal);
    if (sigsetjmp(out, 1) == 0)
        pthread_mutex_lock(&outer);
    pthread_join(keeper, NULL);
    puts("left");
    wait_once_more();
}

/* The child has a copy of the lock that no thread frees. */
static void fork_in_handler(int number) {
    (void)number;
    if (fork() == 0)
        memset(&outer, 0, sizeof outer);
    atomic_store(&in_handler, true);
}

static void forks_in_wait(void) {
    const pid_t parent = getpid();
    int status = 0;
    on_signal(fork_in_handler);
    fflush(stdout);
    const pthread_t keeper = start_keeper(keep_and_signal);
    const int result = pthread_mutex_lock(&outer);
    wait_once_more();
    if (getpid() != parent) {
        fflush(stdout);
        exit(result);
    }
    pthread_join(keeper, NULL);
    waitpid(-1, &status, 0);
    printf("forks: %d %d\n", result, status);
}

/* --- other ends of a wait --- */

static void *wait_for_cancellation(void *arg) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    atomic_store(&waiter, own_id());
    pthread_mutex_lock(&outer);
    return arg;
}

static void cancelled(void) {
    pthread_t thread;
    void *result;
    for (int turn = 0; turn < 3; turn++) {
        pthread_mutex_lock(&outer);
        atomic_store(&waiter, 0);
        pthread_create(&thread, NULL, wait_for_cancellation, NULL);
        while (!atomic_load(&waiter))
            usleep(200);
        wait_until_it_sleeps(atomic_load(&waiter));
        pthread_cancel(thread);
        pthread_join(thread, &result);
        printf("cancelled: %d\n", result == PTHREAD_CANCELED);
        pthread_mutex_unlock(&outer);
        wait_once_more();
    }
}

/* The child has its parent's memory, and a thread of the parent frees the lock. */
static void *keep_for_a_while(void *arg) {
    pthread_mutex_lock(&outer);
    pthread_barrier_wait(&is_held);
    usleep(50000);
    pthread_mutex_unlock(&outer);
    return arg;
}

static void in_vfork(void) {
    int status = 1;
    const pthread_t keeper = start_keeper(keep_for_a_while);
    const pid_t child = vfork();
    if (child == 0) {
        pthread_mutex_lock(&outer);
        pthread_mutex_unlock(&outer);
        _exit(3);
    }
    waitpid(child, &status, 0);
    pthread_join(keeper, NULL);
    printf("vfork: %d\n", WEXITSTATUS(status));
    wait_once_more();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"results", results},
                 {"in_handler", waits_in_handler},
                 {"leaves_handler", leaves_handler},
                 {"forks_in_wait", forks_in_wait},
                 {"cancelled", cancelled},
                 {"in_vfork", in_vfork}};
    for (size_t i = 0; argc == 2 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, argv[1]) == 0) {
            modes[i].run();
            return 0;
        }
    return 2;
}
