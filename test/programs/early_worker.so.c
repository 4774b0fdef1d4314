/* Is a library whose constructor makes a thread that burns CPU, and stays to the process's end. */
#include "cpu_work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

int worked(void);

static atomic_bool done;

BURNER(burns_early, 10)

static void *work(void *unused) {
    burns_early();
    done = true;
    for (;;)
        pause();
    return unused;
}

/* Returns 1 once the thread has burnt its time. */
int worked(void) {
    while (!done)
        usleep(1000);
    return 1;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) == 0)
        pthread_detach(thread);
}
