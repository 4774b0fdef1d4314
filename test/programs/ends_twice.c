/* Ends by FIRST on the main thread, and by SECOND on another thread when the file GO exists.
 *     ends_twice FIRST SECOND GO
 * The second prints its thread's id before it ends, or when it has sent its signal to the main
 * thread ("handler", "to_main"). Exit statuses are 3 and 4. */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIRST = 3, SECOND = 4 };

BURNER(works, 200)

static pthread_t main_thread;
static const char *second, *go;

static void end_by(const char *way, int status) {
    if (strcmp(way, "exit") == 0)
        exit(status);
    if (strcmp(way, "_exit") == 0)
        _exit(status);
    if (strcmp(way, "exit_group") == 0)
        syscall(SYS_exit_group, status);
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(status);
    if (strcmp(way, "SIGTERM") == 0)
        raise(SIGTERM);
    /* "cancelled": the thread will end at its next cancellation point */
    pthread_cancel(pthread_self());
    exit(status);
}

/* Runs on the main thread, in the middle of the first end. */
static void on_user_signal(int number) {
    (void)number;
    end_by("_exit", SECOND);
}

static void *end_second(void *unused) {
    while (access(go, F_OK) != 0)
        usleep(1000);
    const int sent = strcmp(second, "handler") == 0 ? SIGUSR1 : SIGTERM;
    const bool to_main = sent == SIGUSR1 || strcmp(second, "to_main") == 0;
    if (to_main)
        pthread_kill(main_thread, sent);
    printf("%ld\n", syscall(SYS_gettid));
    fflush(stdout);
    if (!to_main)
        end_by(second, SECOND);
    for (;;)
        pause();
    return unused;
}

int main(int count, char **arguments) {
    pthread_t thread;
    if (count != 4)
        return 1;
    second = arguments[2];
    go = arguments[3];
    main_thread = pthread_self();
    signal(SIGUSR1, on_user_signal);
    pthread_create(&thread, NULL, end_second, NULL);
    works();
    if (strcmp(arguments[1], "return") == 0)
        return FIRST;
    end_by(arguments[1], FIRST);
    return 2;
}
