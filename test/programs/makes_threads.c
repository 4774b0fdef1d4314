/* Makes threads that burn CPU and stay to the process's end, and burns some itself.
 *
 * usage: makes_threads HOW COUNT
 * HOW: "linked", by the pthread_create that it is linked to; "found", by the one that dlsym finds
 * in libc, past every preload; "bare", by clone(2).
 */
#define _GNU_SOURCE
#include "cpu_sample.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16, MOST = 64 };

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static atomic_int working;
static char stacks[MOST][STACK_BYTES] __attribute__((aligned(16)));

SAMPLED_BURNER(thread_burns, 20)
SAMPLED_BURNER(main_burns, 40)

/* Works on a bare clone, too, which has the thread-local storage of its creator. */
static void *work(void *unused) {
    thread_burns();
    working--;
    for (;;)
        pause();
    return unused;
}

static int work_bare(void *unused) {
    return work(unused) != NULL;
}

static create_function *creator(const char *how) {
    create_function *found = pthread_create;
    void *const symbol = dlsym(dlopen("libc.so.6", RTLD_LAZY), "pthread_create");
    if (strcmp(how, "found") == 0)
        memcpy(&found, &symbol, sizeof found);
    return found;
}

static bool make(const char *how, int number) {
    static const int as_a_thread =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    pthread_t thread;
    if (strcmp(how, "bare") == 0)
        return clone(work_bare, stacks[number] + STACK_BYTES, as_a_thread, NULL) > 0;
    return creator(how)(&thread, NULL, work, NULL) == 0;
}

int main(int argc, char **argv) {
    const int count = argc > 2 ? atoi(argv[2]) : 0;
    if (count < 1 || count > MOST)
        return 1;
    working = count;
    for (int i = 0; i < count; i++)
        if (!make(argv[1], i))
            return 2;
    main_burns();
    while (working > 0)
        usleep(1000);
    puts("made");
    return 0;
}
