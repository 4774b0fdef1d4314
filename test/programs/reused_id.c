/* Has a thread that gets the id of one that has ended, and lives until the process ends. Prints the
 * process's true CPU time in nanoseconds. The program sets the next id in the kernel
 * (CAP_CHECKPOINT_RESTORE); status 77: it may not.
 */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* For each new thread the profiler checks whether two threads are gone, the latest first. */
enum { EARLIER = 64, TRIES = 20, NOT_ALLOWED = 77 };

static const uint64_t burn_ns = 300000000;

static _Atomic int first_id;
static _Atomic int turn = -1; /* of the earlier threads: the one that may end */
static _Atomic bool burnt;

static void *end_in_turn(void *number) {
    if (number == NULL)
        atomic_store(&first_id, gettid());
    while (atomic_load(&turn) < (int)(intptr_t)number)
        usleep(100);
    return NULL;
}

NOIPA static void burn(void) {
    WORK_UNTIL(burn_ns);
}

static void *live_on(void *wanted) {
    if (gettid() != (int)(intptr_t)wanted)
        return NULL;
    burn();
    atomic_store(&burnt, true);
    for (;;)
        pause();
}

static void choose_next_id(int id) {
    FILE *const file = fopen("/proc/sys/kernel/ns_last_pid", "w");
    if (!file || fprintf(file, "%d", id - 1) < 0 || fclose(file) != 0)
        exit(NOT_ALLOWED);
}

/* Keeps a thread with that id alive, unless another process is faster to get the id. */
static void live_on_as(int id) {
    pthread_t thread;
    choose_next_id(id);
    if (pthread_create(&thread, NULL, live_on, (void *)(intptr_t)id) != 0)
        exit(1);
    while (!atomic_load(&burnt) && pthread_tryjoin_np(thread, NULL) != 0)
        usleep(1000);
}

static void run_earlier_threads(void) {
    pthread_t threads[EARLIER];
    for (intptr_t i = 0; i < EARLIER; i++)
        if (pthread_create(&threads[i], NULL, end_in_turn, (void *)i) != 0)
            exit(1);
    for (int i = 0; i < EARLIER; i++) {
        atomic_store(&turn, i);
        pthread_join(threads[i], NULL);
    }
}

int main(void) {
    run_earlier_threads();
    for (int i = 0; i < TRIES && !atomic_load(&burnt); i++)
        live_on_as(atomic_load(&first_id));
    printf("%lu\n", clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    return !atomic_load(&burnt);
}
