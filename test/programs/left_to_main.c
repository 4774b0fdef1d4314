/* Sends signals to the whole process, for each of which the kernel chooses the main thread, while
 * another thread is sampled.
 *
 * usage: left_to_main allocates|works [behind]
 *
 * The main thread is in vfork(), and so it does not receive a signal before the child ends. The
 * child sends one signal, and ends when the other thread has taken it, or sleeps, which that thread
 * never does otherwise. The program ends once the main thread has received a signal, or when it has
 * received none of many. behind: a filter of system calls kills for sigpending(), and there are few
 * signals. Prints which thread had signals.
 */
#define _GNU_SOURCE
#include "forbid_call.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_SIGNALS = 1000, FEW_SIGNALS = 10 };

static _Atomic int worker;
static _Atomic int by_main;
static _Atomic int by_worker;
static char stat_name[64];

static void handle(int number) {
    (void)number;
    atomic_fetch_add(gettid() == getpid() ? &by_main : &by_worker, 1);
}

static void *allocates(void *unused) {
    atomic_store(&worker, gettid());
    for (;;) {
        void *const memory = malloc(100);
        __asm__ volatile("" : : "r"(memory) : "memory");
        free(memory);
    }
    return unused;
}

static void *works(void *unused) {
    atomic_store(&worker, gettid());
    for (;;)
        __asm__ volatile("");
    return unused;
}

static bool worker_sleeps(void) {
    char text[256];
    const int file = open(stat_name, O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    text[size > 0 ? size : 0] = 0;
    const char *const name_end = strrchr(text, ')');
    return name_end && strncmp(name_end, ") S", 3) == 0;
}

static void send_one(pid_t process) {
    const int had = atomic_load(&by_worker);
    const pid_t child = vfork();
    if (child == 0) {
        kill(process, SIGUSR1);
        while (!worker_sleeps() && atomic_load(&by_worker) == had)
            ;
        _exit(0);
    }
    if (child < 0)
        exit(1);
}

int main(int argc, char **argv) {
    const struct sigaction action = {.sa_handler = handle};
    pthread_t thread;
    if (argc < 2 || sigaction(SIGUSR1, &action, NULL) != 0)
        return 2;
    if (argc > 2)
        forbid_call(SYS_rt_sigpending);
    if (pthread_create(&thread, NULL, strcmp(argv[1], "works") == 0 ? works : allocates, NULL) != 0)
        return 1;
    while (!atomic_load(&worker))
        ;
    snprintf(stat_name, sizeof stat_name, "/proc/%d/task/%d/stat", getpid(), worker);
    const int most = argc > 2 ? FEW_SIGNALS : MOST_SIGNALS;
    for (int i = 0; i < most && !atomic_load(&by_main); i++)
        send_one(getpid());
    puts(by_main ? "the main thread has had one" : "the other thread has had all");
    return 0;
}
