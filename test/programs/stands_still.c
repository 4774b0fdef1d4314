/* Has threads that each wait for something else, and one that computes. Requests an export once all
 * of them are where they will stay, and the waiting threads have waited for nearly all of their
 * lives, however late they were scheduled. Then it requests another export, and prints the id of
 * the thread that it made by clone(2).
 *
 * usage: stands_still [SECONDS [LIBRARY]]
 *
 * SECONDS: the time before the second export, 0 if not given. LIBRARY: the reading thread publishes
 * a span by it (spans.so.c).
 */
#define _GNU_SOURCE
#include "../../shim/otelprof.h"
#include "cpu_work.h"
#include "flush_timeout.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16, TEXT_BYTES = 256 };
enum { WAITED_PERCENT = 97 }; /* more than makes a thread idle: shim/capture/wait/idle_waits.h */

static const int as_a_thread =
    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
static const uint8_t trace[16] = "a thread's trace";
static const uint8_t span[8] = "its span";

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t of_condition = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t has_mutex;
static int ends[2];
static _Atomic pid_t bare;
static void (*begin_span)(unsigned thread, unsigned span, int fixed);
static char bare_stack[STACK_BYTES] __attribute__((aligned(16)));

NOIPA static void *sleeps(void *unused) {
    for (;;)
        sleep(1000);
    return unused;
}

NOIPA static void *waits_for_work(void *unused) {
    pthread_mutex_lock(&of_condition);
    for (;;)
        pthread_cond_wait(&condition, &of_condition);
    return unused;
}

NOIPA static void *holds_it(void *unused) {
    pthread_mutex_lock(&mutex);
    sem_post(&has_mutex);
    for (;;)
        poll(NULL, 0, -1);
    return unused;
}

NOIPA static void *wants_it(void *unused) {
    otelprof_span_set(trace, span);
    otelprof_label_push("tenant", "blocked");
    pthread_mutex_lock(&mutex);
    return unused;
}

NOIPA static void *reads(void *unused) {
    char byte;
    if (begin_span)
        begin_span(3, 7, 1);
    while (read(ends[0], &byte, 1) >= 0)
        ;
    return unused;
}

NOIPA static void *computes(void *unused) {
    otelprof_span_set(trace, span);
    WORK_UNTIL(UINT64_MAX);
    return unused;
}

/* Has the thread-local storage of its creator: it calls no function of libc's that uses it. */
static int waits_bare(void *unused) {
    (void)unused;
    bare = (pid_t)syscall(SYS_gettid);
    for (;;)
        syscall(SYS_ppoll, NULL, 0, NULL, NULL, 8);
    return 0;
}

static struct thread {
    const char *name;
    void *(*routine)(void *);
    _Atomic pid_t tid;
    uint64_t created; /* CLOCK_MONOTONIC, nanoseconds */
    uint64_t stays;   /* since when the thread certainly stays */
} threads[] = {{"holds", holds_it, 0, 0, 0},
               {"sleeps", sleeps, 0, 0, 0},
               {"works-never", waits_for_work, 0, 0, 0},
               {"wants", wants_it, 0, 0, 0},
               {"reads", reads, 0, 0, 0},
               {"computes", computes, 0, 0, 0}};
enum { THREADS = sizeof threads / sizeof *threads };

static void *run(void *of) {
    struct thread *const thread = of;
    pthread_setname_np(pthread_self(), thread->name);
    thread->tid = (pid_t)syscall(SYS_gettid);
    return thread->routine(NULL);
}

/* Returns the thread's state; 'S': asleep. */
static char state_of(pid_t tid) {
    char path[TEXT_BYTES];
    char text[TEXT_BYTES] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    FILE *const file = fopen(path, "r");
    if (!file || !fgets(text, sizeof text, file))
        exit(2);
    fclose(file);
    const char *const end = strrchr(text, ')');
    return end ? end[2] : '?';
}

static bool stands_where_it_stays(const struct thread *thread) {
    clockid_t clock;
    if (!thread->tid)
        return false;
    if (thread->routine != computes)
        return state_of(thread->tid) == 'S';
    /* clock of its CPU time: clock_getcpuclockid */
    clock = (clockid_t)(~(unsigned)thread->tid << 3 | 6);
    return clock_ns(clock) > 300 * NS_PER_MS;
}

static void start_all(void) {
    pthread_t thread;
    for (int i = 0; i < THREADS; i++) {
        threads[i].created = clock_ns(CLOCK_MONOTONIC);
        if (pthread_create(&thread, NULL, run, &threads[i]) != 0)
            exit(1);
        while (i == 0 && sem_wait(&has_mutex) != 0)
            ;
    }
    clone(waits_bare, bare_stack + STACK_BYTES, as_a_thread, NULL);
}

static bool has_only_waited(const struct thread *thread) {
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    return (now - thread->stays) * 100 > (now - thread->created) * WAITED_PERCENT;
}

static void wait_until_all_stay(void) {
    for (int i = 0; i < THREADS; i++) {
        while (!stands_where_it_stays(&threads[i]))
            usleep(1000);
        threads[i].stays = clock_ns(CLOCK_MONOTONIC);
    }
    for (int i = 0; i < THREADS; i++)
        while (threads[i].routine != computes && !has_only_waited(&threads[i]))
            usleep(1000);
    while (!bare || state_of(bare) != 'S')
        usleep(1000);
}

static void load(const char *library) {
    void *const symbol = dlsym(dlopen(library, RTLD_NOW), "span_begin");
    memcpy(&begin_span, &symbol, sizeof begin_span);
}

int main(int count, char **arguments) {
    if (count > 2)
        load(arguments[2]);
    if (pipe(ends) != 0 || sem_init(&has_mutex, 0, 0) != 0)
        return 3;
    start_all();
    wait_until_all_stay();
    if (!otelprof_flush(FLUSH_TIMEOUT_MS))
        return 4;
    sleep(count > 1 ? (unsigned)atoi(arguments[1]) : 0);
    if (!otelprof_flush(FLUSH_TIMEOUT_MS))
        return 5;
    printf("%d\n", (int)bare);
    fflush(stdout);
    _exit(0);
}
