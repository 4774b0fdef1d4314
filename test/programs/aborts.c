/* Holds PEAK bytes, from one function, until the profiler has seen them; then calls abort(), in the
 * way that its argument names. Prints the result that a parent or a handler sees.
 *     aborts WAY [NUMBER] */
#define _GNU_SOURCE
#include "forked.h"
#include "noipa.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OBJECTS = 2000, OBJECT_BYTES = 3000, SEEN_MS = 400 };

static void *volatile held[OBJECTS];
static long number;

NOIPA static void hold_much(void) {
    for (int i = 0; i < OBJECTS; i++)
        held[i] = malloc(OBJECT_BYTES);
}

NOIPA static void gives_up(void) {
    abort();
}

/* --- ways --- */

static void *abort_in_thread(void *barrier) {
    if (barrier)
        pthread_barrier_wait(barrier);
    gives_up();
    return NULL;
}

static void in_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, abort_in_thread, NULL);
    pthread_join(thread, NULL);
}

static void in_threads(void) {
    pthread_barrier_t together;
    pthread_t thread;
    pthread_barrier_init(&together, NULL, (unsigned)number + 1);
    for (long i = 0; i < number; i++)
        pthread_create(&thread, NULL, abort_in_thread, &together);
    abort_in_thread(&together);
}

static volatile sig_atomic_t is_aborting;

static void *abort_and_say(void *unused) {
    is_aborting = 1;
    gives_up();
    return unused;
}

/* Calls exit() while another thread aborts: without the profiler the abort would have ended the
 * process. */
static void beside_exit(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, abort_and_say, NULL);
    while (!is_aborting)
        continue;
    usleep(2000);
    exit(3);
}

static void raised(void) {
    raise(SIGABRT);
}

static void sent(void) {
    kill(getpid(), SIGABRT);
    for (;;)
        pause();
}

static void on_segv(int signal_number) {
    (void)signal_number;
    gives_up();
}

/* Aborts in a handler. `number`: the stack's bytes; 0: the least that the system allows. */
static void in_handler(void) {
    const size_t size = number ? (size_t)number : (size_t)sysconf(_SC_MINSIGSTKSZ);
    const stack_t stack = {.ss_sp = malloc(size), .ss_size = size};
    const struct sigaction action = {.sa_handler = on_segv, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, NULL) != 0)
        perror("sigaltstack");
    sigaction(SIGSEGV, &action, NULL);
    raise(SIGSEGV);
}

static void report_status(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    printf("child: signal %d, core %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0,
           WIFSIGNALED(status) && WCOREDUMP(status));
}

static void in_child(void) {
    const pid_t child = fork_profiled();
    if (child == 0) {
        hold_much();
        usleep(SEEN_MS * 1000);
        gives_up();
    }
    report_status(child);
}

static void in_vfork(void) {
    const pid_t child = vfork();
    if (child == 0)
        gives_up();
    report_status(child);
}

static void handle(int signal_number) {
    printf("handled %d\n", signal_number);
    fflush(stdout);
    _exit(4);
}

static void handled(void) {
    signal(SIGABRT, handle);
    gives_up();
}

static void ignored(void) {
    signal(SIGABRT, SIG_IGN);
    raise(SIGABRT);
    puts("went on");
    fflush(stdout);
    gives_up();
}

static void set_back(void) {
    signal(SIGABRT, handle);
    signal(SIGABRT, SIG_DFL);
    gives_up();
}

static void asked(void) {
    struct sigaction seen;
    memset(&seen, 0xff, sizeof seen);
    sigaction(SIGABRT, NULL, &seen);
    printf("default %d, flags %d\n", seen.sa_handler == SIG_DFL, seen.sa_flags);
    fflush(stdout);
    gives_up();
}

static void *wait_for_ever(void *unused) {
    for (;;)
        pause();
    return unused;
}

/* Has libc find in the middle of a malloc, with its lock held, that the topmost chunk is larger
 * than all memory. Another thread makes malloc take that chunk. */
static void corrupted(void) {
    enum { BYTES = 100000 };
    pthread_t other;
    pthread_create(&other, NULL, wait_for_ever, NULL);
    volatile size_t *const last = malloc(BYTES);
    /* the chunk's size */
    last[malloc_usable_size((void *)last) / sizeof *last] = SIZE_MAX & ~(size_t)7;
    held[0] = malloc(BYTES);
}

static const struct way {
    const char *name;
    void (*abort)(void);
} ways[] = {{"abort", gives_up},      {"raise", raised},       {"kill", sent},
            {"thread", in_thread},    {"threads", in_threads}, {"beside_exit", beside_exit},
            {"handler", in_handler},  {"child", in_child},     {"vfork", in_vfork},
            {"own_handler", handled}, {"ignored", ignored},    {"set_back", set_back},
            {"asked", asked},         {"corrupted", corrupted}};

int main(int argc, char **argv) {
    number = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    hold_much();
    usleep(SEEN_MS * 1000);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (argc > 1 && strcmp(argv[1], ways[i].name) == 0)
            ways[i].abort();
    return 0;
}
