/* Takes steps, each named by an argument, with an export behind each: work (eight threads use the
 * processors for a second), rest (half a second), keep (objects that stay), grow and shrink (256
 * MiB). Work, rest and keep allocate 100 objects each. Prints when each export was requested and
 * was made, as a list of pairs in nanoseconds since the epoch. */
#define _GNU_SOURCE
#include "../../shim/otelprof.h"
#include "flush_timeout.h"
#include "sites.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, OBJECTS = 100, OBJECT_BYTES = 1000 };
static const size_t grown_bytes = (size_t)256 << 20;

static void *kept[OBJECTS];
static char *grown;

static long now_nano(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

NOIPA static void *burns(void *argument) {
    const long end = now_nano(CLOCK_MONOTONIC) + 1000000000L;
    while (now_nano(CLOCK_MONOTONIC) < end)
        ;
    KEEP(argument);
    return argument;
}

NOIPA static void churns(void) {
    for (int i = 0; i < OBJECTS; i++) {
        void *volatile object = malloc(OBJECT_BYTES);
        free(object);
    }
}

NOIPA static void works(void) {
    pthread_t threads[THREADS];
    churns();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, burns, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

NOIPA static void rests(void) {
    churns();
    usleep(500 * 1000);
}

NOIPA static void keeps(void) {
    for (int i = 0; i < OBJECTS; i++)
        kept[i] = malloc(OBJECT_BYTES);
    usleep(500 * 1000);
}

NOIPA static void grows(void) {
    grown = mmap(NULL, grown_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(grown, 1, grown_bytes);
}

NOIPA static void shrinks(void) {
    munmap(grown, grown_bytes);
}

static const struct step {
    const char *name;
    void (*function)(void);
} steps[] = {
    {"work", works}, {"rest", rests}, {"keep", keeps}, {"grow", grows}, {"shrink", shrinks}};

static int take(const char *name) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(steps[i].name, name) == 0) {
            steps[i].function();
            return 1;
        }
    return 0;
}

int main(int argc, char **argv) {
    printf("[");
    for (int i = 1; i < argc; i++) {
        if (!take(argv[i]))
            return 2;
        const long asked = now_nano(CLOCK_REALTIME);
        if (!otelprof_flush(FLUSH_TIMEOUT_MS))
            return 3;
        printf("%s[%ld, %ld]", i == 1 ? "" : ", ", asked, now_nano(CLOCK_REALTIME));
    }
    printf("]\n");
    return kept[0] == grown;
}
