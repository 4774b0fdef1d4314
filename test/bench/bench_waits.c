/* Measures hooks of calls that may block, and the polls of waiting threads.
 *
 * Usage: bench_waits mutex      nanoseconds of a lock and its unlock without contention
 *        bench_waits read       nanoseconds of a read of one byte from a file
 *        bench_waits threads COUNT SECONDS MICROSECONDS
 * The last prints the CPU seconds that the helper thread takes in a second, while COUNT threads
 * sleep for MICROSECONDS at a time (0: for good); 0 where there is no such thread.
 */
#define _GNU_SOURCE
#include "../../common/helper_name.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 21, MUTEXES = 2000000, READS = 200000 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock_and_unlock(void) {
    for (int i = 0; i < MUTEXES; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static int file;

static void read_bytes(void) {
    lseek(file, 0, SEEK_SET);
    for (int i = 0; i < READS; i++) {
        char byte;
        if (read(file, &byte, 1) != 1)
            exit(1);
    }
}

static void print_median(void (*work)(void), int each) {
    double taken[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        const double start = now();
        work();
        taken[i] = (now() - start) / each;
    }
    qsort(taken, ROUNDS, sizeof *taken, by_value);
    printf("%.3f\n", taken[ROUNDS / 2]);
}

static long pause_us;

static void *sleeps(void *unused) {
    for (;;) {
        if (pause_us)
            usleep((useconds_t)pause_us);
        else
            pause();
    }
    return unused;
}

static bool file_of_thread(const char *id, const char *name, char *text, int size) {
    char path[320];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", id, name);
    FILE *const stream = fopen(path, "re");
    if (!stream)
        return false;
    const bool got = fgets(text, size, stream);
    fclose(stream);
    return got;
}

static double helper_seconds(void) {
    double seconds = 0;
    DIR *const threads = opendir("/proc/self/task");
    const struct dirent *entry;
    while (threads && (entry = readdir(threads))) {
        char text[128];
        if (!file_of_thread(entry->d_name, "comm", text, sizeof text))
            continue;
        text[strcspn(text, "\n")] = 0;
        if (helper_name_is(text) && file_of_thread(entry->d_name, "schedstat", text, sizeof text))
            seconds += (double)strtoull(text, NULL, 10) / 1e9;
    }
    if (threads)
        closedir(threads);
    return seconds;
}

static void measure_threads(int count, int seconds) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, sleeps, NULL) != 0)
            exit(1);
    }
    sleep(3); /* the exporter is loaded, and the threads are known */
    const double before = helper_seconds(), start = now();
    sleep((unsigned)seconds);
    const double after = helper_seconds();
    printf("%.6f\n", (after - before) / ((now() - start) / 1e9));
}

int main(int argc, char **argv) {
    const char *const what = argc > 1 ? argv[1] : "";
    file = memfd_create("bytes", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, READS) != 0)
        return 1;
    if (strcmp(what, "mutex") == 0)
        print_median(lock_and_unlock, MUTEXES);
    else if (strcmp(what, "read") == 0)
        print_median(read_bytes, READS);
    else if (strcmp(what, "threads") == 0 && argc == 5) {
        pause_us = strtol(argv[4], NULL, 10);
        measure_threads((int)strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10));
    } else
        return 2;
    return 0;
}
