/* Has THREADS threads that wait in the function that the kind is named after, each in ROUNDS waits
 * of MS milliseconds: known_waits KIND THREADS ROUNDS MS. Prints, as JSON, for how long the kernel
 * had these threads neither on a processor nor ready for one, in nanoseconds, all threads together:
 * in the function, and since just before they were created. With KIND "all" there are THREADS
 * threads of each kind. With ROUNDS 0 all wait until the process is ended. */
#define _GNU_SOURCE
#include "noipa.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int threads = 1;
static int rounds = 10;
static int milliseconds = 50;

enum { KINDS = 8, MOST = 4096 };

/* --- the kernel's figures of the calling thread --- */

struct clocks {
    long long wall;
    long long run;
    long long delay;
};

static struct clocks now(void) {
    struct clocks clocks = {0, 0, 0};
    struct timespec time;
    FILE *const file = fopen("/proc/thread-self/schedstat", "re");
    if (!file || fscanf(file, "%lld %lld", &clocks.run, &clocks.delay) != 2)
        exit(3);
    fclose(file);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    clocks.run = time.tv_sec * 1000000000LL + time.tv_nsec;
    clock_gettime(CLOCK_MONOTONIC, &time);
    clocks.wall = time.tv_sec * 1000000000LL + time.tv_nsec;
    return clocks;
}

static long long off_cpu(struct clocks from, struct clocks to) {
    return to.wall - from.wall - (to.run - from.run) - (to.delay - from.delay);
}

/* --- waits --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static struct timespec time_of(int ms) {
    return (struct timespec){ms / 1000, ms % 1000 * 1000000L};
}

static struct timespec in(int ms) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += ms % 1000 * 1000000L;
    time.tv_sec += ms / 1000 + time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void sleep_once(void) {
    const struct timespec time = time_of(milliseconds);
    nanosleep(&time, NULL);
}

static void poll_once(void) {
    poll(NULL, 0, milliseconds);
}

/* Sleeps, and then ends the thread, which another waits for. The next functions write, or release a
 * lock, after such a sleep. */
static void *sleeps_for_another(void *arg) {
    sleep_once();
    return arg;
}

static void *writes_after_a_while(void *arg) {
    sleep_once();
    if (write(*(int *)arg, "x", 1) != 1)
        exit(4);
    return NULL;
}

static void *holds_for_a_while(void *arg) {
    pthread_mutex_lock(&mutex);
    *(volatile int *)arg = 1;
    sleep_once();
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void read_once(void) {
    int ends[2];
    char byte;
    pthread_t other;
    if (pipe(ends) != 0 || pthread_create(&other, NULL, writes_after_a_while, &ends[1]) != 0)
        exit(4);
    if (read(ends[0], &byte, 1) != 1)
        exit(4);
    pthread_join(other, NULL);
    close(ends[0]);
    close(ends[1]);
}

static void cond_once(void) {
    const struct timespec until = in(milliseconds);
    pthread_mutex_lock(&cond_mutex);
    while (pthread_cond_timedwait(&cond, &cond_mutex, &until) == 0)
        ;
    pthread_mutex_unlock(&cond_mutex);
}

static void lock_once(void) {
    volatile int held = 0;
    pthread_t other;
    if (pthread_create(&other, NULL, holds_for_a_while, (void *)&held) != 0)
        exit(4);
    while (!held)
        sched_yield();
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_join(other, NULL);
}

static void join_once(void) {
    pthread_t other;
    if (pthread_create(&other, NULL, sleeps_for_another, NULL) != 0)
        exit(4);
    pthread_join(other, NULL);
}

/* Runs another program as a child: the profile has none of it under this function. */
static void wait_once(void) {
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%d.%03d", milliseconds / 1000, milliseconds % 1000);
    const pid_t child = fork();
    if (child == 0) {
        execlp("sleep", "sleep", seconds, NULL);
        _exit(5);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        exit(4);
}

/* Waits if the file is on a real disk. */
static void sync_once(void) {
    static char block[1 << 20];
    const int file = open("synced", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    memset(block, (int)time(NULL), sizeof block);
    if (file < 0 || write(file, block, sizeof block) != sizeof block || fsync(file) != 0)
        exit(4);
    close(file);
}

/* --- threads --- */

static _Atomic long long in_function[KINDS];
static _Atomic long long in_all[KINDS];

/* Adds the thread's figures. Is called right before the thread's end, after its last wait.
 * `created` was read before pthread_create(). */
static void add(int index, struct clocks from, const struct clocks *created) {
    const struct clocks to = now();
    in_function[index] += off_cpu(from, to);
    in_all[index] += off_cpu(*created, to);
}

/* Defines a thread's function, which is on the stack by its own name while once() waits. */
#define WAITER(index, name, once)                                                                  \
    NOIPA static void *name(void *arg) {                                                           \
        const struct clocks from = now();                                                          \
        for (int i = 0; rounds == 0 || i < rounds; i++)                                            \
            once();                                                                                \
        add(index, from, arg);                                                                     \
        return NULL;                                                                               \
    }
WAITER(0, sleeps_here, sleep_once)
WAITER(1, polls_here, poll_once)
WAITER(2, reads_here, read_once)
WAITER(3, waits_for_condition_here, cond_once)
WAITER(4, locks_here, lock_once)
WAITER(5, joins_here, join_once)
WAITER(6, waits_for_child_here, wait_once)
WAITER(7, syncs_here, sync_once)

static const struct {
    const char *name;
    const char *function;
    void *(*run)(void *);
} kinds[KINDS] = {
    {"sleep", "sleeps_here", sleeps_here},
    {"poll", "polls_here", polls_here},
    {"pipe", "reads_here", reads_here},
    {"cond", "waits_for_condition_here", waits_for_condition_here},
    {"mutex", "locks_here", locks_here},
    {"join", "joins_here", joins_here},
    {"child", "waits_for_child_here", waits_for_child_here},
    {"fsync", "syncs_here", syncs_here},
};

static int is_wanted(const char *kind, int index) {
    return strcmp(kind, "all") == 0 || strcmp(kind, kinds[index].name) == 0;
}

static void tell(const char *kind) {
    const char *separator = "{";
    for (int i = 0; i < KINDS; i++)
        if (is_wanted(kind, i)) {
            printf("%s\"%s\": [%lld, %lld]", separator, kinds[i].function, in_function[i],
                   in_all[i]);
            separator = ", ";
        }
    printf("}\n");
}

int main(int argc, char **argv) {
    static pthread_t ids[MOST];
    static struct clocks created[MOST];
    int count = 0;
    if (argc != 5)
        return 2;
    threads = atoi(argv[2]);
    rounds = atoi(argv[3]);
    milliseconds = atoi(argv[4]);
    for (int i = 0; i < KINDS; i++)
        for (int j = 0; is_wanted(argv[1], i) && j < threads && count < MOST; j++, count++) {
            created[count].wall = now().wall;
            if (pthread_create(&ids[count], NULL, kinds[i].run, &created[count]) != 0)
                return 3;
        }
    for (int i = 0; i < count; i++)
        pthread_join(ids[i], NULL);
    tell(argv[1]);
    return 0;
}
