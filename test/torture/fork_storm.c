/* Forks all the time from a program of several busy threads: children that allocate, make a thread
 * and end; children that only exec; and execs out of the middle of the work. */
#define _GNU_SOURCE
#include "torture.h"

#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

WORK(work_beside_forks)

static void *in_the_child(void *unused) {
    void *volatile block = malloc(10000);
    free(block);
    WORK_FOR(300 * NS_PER_US);
    return unused;
}

static void live_in_the_child(int status) {
    pthread_t thread;
    void *volatile blocks[20];
    for (int i = 0; i < 20; i++)
        blocks[i] = malloc(100 + (size_t)i * 700);
    pthread_create(&thread, NULL, in_the_child, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < 20; i++)
        free(blocks[i]);
    _exit(status);
}

static void expect_status(pid_t child, int expected, const char *what) {
    int status = -1;
    check(child > 0 && waitpid(child, &status, 0) == child, what);
    check(WIFEXITED(status) && WEXITSTATUS(status) == expected, what);
}

static void fork_one(int status) {
    const pid_t child = fork();
    if (child == 0)
        live_in_the_child(status);
    expect_status(child, status, "a forked child's status");
}

static void vfork_one(void) {
    const pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", NULL);
        _exit(99);
    }
    expect_status(child, 0, "a vforked child's status");
}

static void spawn_one(void) {
    char *const arguments[] = {(char *)(uintptr_t) "false", NULL};
    pid_t child;
    check(posix_spawn(&child, "/bin/false", NULL, NULL, arguments, environ) == 0, "posix_spawn");
    expect_status(child, 1, "a spawned child's status");
}

/* Calls exec while a timer may just be about to fire. */
static void exec_under_load(void) {
    const pid_t child = fork();
    if (child == 0) {
        WORK_FOR(5 * NS_PER_MS);
        execl("/bin/true", "true", NULL);
        _exit(99);
    }
    expect_status(child, 0, "the status after an exec under load");
}

static void *fork_often(void *unused) {
    for (int i = 0; time_left(); i++) {
        if (i % 4 == 0)
            fork_one(i % 100);
        else if (i % 4 == 1)
            vfork_one();
        else if (i % 4 == 2)
            spawn_one();
        else
            exec_under_load();
    }
    return unused;
}

static void *work_often(void *unused) {
    for (unsigned i = 0; time_left(); i++) {
        void *volatile block = malloc(50 + i % 3000);
        free(block);
        if (i % 1000 == 0)
            work_beside_forks(2000);
    }
    return unused;
}

static void *torture(void *number) {
    return (intptr_t)number < 2 ? fork_often(NULL) : work_often(NULL);
}

int main(int argc, char **argv) {
    torture_begin(argc, argv);
    run_threads(torture, THREADS);
    SHARE(work_beside_forks);
    return torture_end();
}
