/* Runs threads that work, sleep, take locks from each other and read from a pipe, all of them on
 * one processor. Prints, as JSON, how long each has lived at least and at most, in nanoseconds, by
 * its name: a thread may have to wait for a processor before it ends. */
#define _GNU_SOURCE
#include "noipa.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 6, LIFE_MS = 1500, TURN_MS = 4 };

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static long long clock_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

NOIPA static void work(int milliseconds) {
    const long long until = clock_of(CLOCK_THREAD_CPUTIME_ID) + milliseconds * 1000000LL;
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
}

static void pause_ms(int milliseconds) {
    const struct timespec time = {0, milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

static void works(void) {
    work(TURN_MS);
}

static void sleeps(void) {
    work(1);
    pause_ms(TURN_MS);
}

static void locks(void) {
    pthread_mutex_lock(&mutex);
    work(1);
    pause_ms(TURN_MS);
    pthread_mutex_unlock(&mutex);
    work(1);
}

static void feeds(void) {
    pause_ms(TURN_MS);
    if (write(ends[1], "x", 1) != 1)
        exit(4);
}

static void reads(void) {
    char byte;
    if (read(ends[0], &byte, 1) != 1)
        exit(4);
}

static struct life {
    const char *name;
    void (*turn)(void);
    long long created;
    long long lived; /* until its last turn has ended */
    long long ended; /* until it was joined */
    pthread_t id;
} lives[THREADS] = {
    {"works", works, 0, 0, 0, 0},   {"sleeps", sleeps, 0, 0, 0, 0}, {"locks_a", locks, 0, 0, 0, 0},
    {"locks_b", locks, 0, 0, 0, 0}, {"feeds", feeds, 0, 0, 0, 0},   {"reads", reads, 0, 0, 0, 0},
};

/* Counts the threads other than the writing one, which goes on until all of them have finished. */
static _Atomic int living = THREADS - 1;

static void *live(void *arg) {
    struct life *const life = arg;
    const long long until = life->created + LIFE_MS * 1000000LL;
    pthread_setname_np(pthread_self(), life->name);
    while (clock_of(CLOCK_MONOTONIC) < until || (life->turn == feeds && living))
        life->turn();
    if (life->turn != feeds)
        living--;
    life->lived = clock_of(CLOCK_MONOTONIC) - life->created;
    return NULL;
}

int main(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0 || pipe(ends) != 0)
        return 3;
    for (int i = 0; i < THREADS; i++) {
        lives[i].created = clock_of(CLOCK_MONOTONIC);
        if (pthread_create(&lives[i].id, NULL, live, &lives[i]) != 0)
            return 3;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(lives[i].id, NULL);
        lives[i].ended = clock_of(CLOCK_MONOTONIC) - lives[i].created;
    }
    for (int i = 0; i < THREADS; i++)
        printf("%s\"%s\": [%lld, %lld]", i ? ", " : "{", lives[i].name, lives[i].lived,
               lives[i].ended);
    printf("}\n");
    return 0;
}
