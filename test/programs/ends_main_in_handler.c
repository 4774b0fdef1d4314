/* Ends its main thread alone, in an exit handler that calls pthread_exit.
 *     ends_main_in_handler exit|return [thread]
 * With "thread" another thread is there, which ends once the main thread has ended. The process
 * ends with its last thread, with status 0, and runs the remaining handler. */
#include "cpu_work.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

BURNER(works, 200)

static pthread_t main_thread;

static void end_thread(void) {
    pthread_exit(NULL);
}

static void say_end(void) {
    printf("the last handler runs\n");
}

static void *outlive(void *unused) {
    clockid_t clock;
    while (pthread_getcpuclockid(main_thread, &clock) == 0)
        usleep(1000);
    return unused;
}

int main(int count, char **arguments) {
    pthread_t thread;
    if (count < 2)
        return 1;
    main_thread = pthread_self();
    atexit(say_end);
    atexit(end_thread);
    if (count > 2)
        pthread_create(&thread, NULL, outlive, NULL);
    works();
    if (strcmp(arguments[1], "exit") == 0)
        exit(3);
    return 3;
}
