/* Has three threads that work, each in a function of its own and in one for the phase: the next
 * phase begins at each SIGUSR1, and the end comes after the last. Prints a line for each phase once
 * all three are in it, and at the end the CPU time of each thread in each phase as JSON, in
 * nanoseconds. */
#include "cpu_work.h"
#include "sites.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3, PHASES = 7, POLL_US = 1000 };

static atomic_int phase, entered[PHASES];
static uint64_t used[THREADS][PHASES];

#define PHASE(number)                                                                              \
    NOIPA static void phase_##number(void) {                                                       \
        while (atomic_load(&phase) == (number))                                                    \
            WORK_FOR(NS_PER_MS);                                                                   \
    }
PHASE(0)
PHASE(1)
PHASE(2)
PHASE(3)
PHASE(4)
PHASE(5)
PHASE(6)
static void (*const phases[PHASES])(void) = {phase_0, phase_1, phase_2, phase_3,
                                             phase_4, phase_5, phase_6};

#define THREAD(number)                                                                             \
    NOIPA static void *thread_##number(void *argument) {                                           \
        for (int i = 0; i < PHASES; i++) {                                                         \
            const uint64_t before = cpu_now();                                                     \
            atomic_fetch_add(&entered[i], 1);                                                      \
            phases[i]();                                                                           \
            used[number][i] = cpu_now() - before;                                                  \
        }                                                                                          \
        KEEP(argument);                                                                            \
        return argument;                                                                           \
    }
THREAD(0)
THREAD(1)
THREAD(2)
static void *(*const starts[THREADS])(void *) = {thread_0, thread_1, thread_2};

static void print(int thread) {
    printf("%s\"thread_%d\": [", thread ? ", " : "{", thread);
    for (int i = 0; i < PHASES; i++)
        printf("%s%lu", i ? ", " : "", used[thread][i]);
    printf("]%s", thread == THREADS - 1 ? "}\n" : "");
}

int main(void) {
    pthread_t threads[THREADS];
    sigset_t next;
    int received;
    sigemptyset(&next);
    sigaddset(&next, SIGUSR1);
    sigprocmask(SIG_BLOCK, &next, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, starts[i], NULL);
    for (int i = 0; i < PHASES; i++) {
        while (atomic_load(&entered[i]) < THREADS)
            usleep(POLL_US);
        printf("phase %d\n", i);
        fflush(stdout);
        sigwait(&next, &received);
        atomic_fetch_add(&phase, 1);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        print(i);
    return 0;
}
