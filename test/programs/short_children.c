/* Has COUNT children, one after the other, that compute: short_children WAY COUNT MILLISECONDS.
 * Prints its id, the CPU time of its children by the kernel's account, in nanoseconds, and the ids
 * of its children. It computes itself, too, so that it has something to export. A child is made and
 * ends by WAY:
 *
 *   exits      is forked, ends by _exit
 *   killed     is forked, ends by SIGKILL
 *   execs      is forked, runs this program as "short_children computes 1 MILLISECONDS"
 *   spawned    is made by posix_spawn, runs the same
 *   early      is made by posix_spawn, exports at once, and waits for the memory that its parent
 *              shares with children before it computes
 *   garbage    is forked once the profiler shares memory with it, overwrites that memory
 *   leaves     is forked once the profiler shares memory with it, ends by _exit
 *   leaves_killed      ends by SIGKILL
 *   leaves_terminated  ends by SIGTERM
 *   leaves_rights      is another user when it computes, if the program is root
 *   leaves_exec        runs this program as "execs" does when it has computed
 *   leaves_child       forks a child that computes, too
 *   between    is forked, forks a child that runs the same, waits for it, and computes
 */
#include "cpu_work.h"
#include "forked.h"

#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *computes[] = {NULL, "computes", "1", NULL, NULL};
static char *waits[] = {NULL, "waits", "1", NULL, NULL};

NOIPA static void child_computes(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

NOIPA static void child_runs(void) {
    execv(computes[0], computes);
    _exit(1);
}

NOIPA static void child_forks(void) {
    const pid_t child = fork_profiled();
    if (child == 0)
        child_runs();
    (void)waitpid(child, NULL, 0);
}

/* Calls `found` for the memory that the profiler of process `pid` shares with children. Returns
 * true if its helper has mapped the last part of it. */
static bool find_shared_of(pid_t pid, void (*found)(char *start, size_t size)) {
    char line[512];
    bool has = false;
    snprintf(line, sizeof line, "/proc/%d/maps", (int)pid);
    FILE *const maps = fopen(line, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *after;
        const uintptr_t start = strtoull(line, &after, 16);
        const uintptr_t end = strtoull(after + 1, NULL, 16);
        const bool is_ledger = strstr(line, "memfd:libotelprof");
        if (!is_ledger && !strstr(line, "/dev/zero (deleted)"))
            continue;
        has |= is_ledger;
        found((char *)start, end - start);
    }
    if (maps)
        fclose(maps);
    return has;
}

static bool find_shared(void (*found)(char *start, size_t size)) {
    return find_shared_of(getpid(), found);
}

static void leave_alone(char *start, size_t size) {
    (void)start, (void)size;
}

static void overwrite(char *start, size_t size) {
    memset(start, 0xff, size);
}

static bool is(const char *way, const char *word) {
    return strcmp(way, word) == 0;
}

static bool leaves(const char *way) {
    return strncmp(way, "leaves", strlen("leaves")) == 0;
}

/* Lives and ends in one of the ways that begin with "leaves". */
static void leave(const char *way, uint64_t milliseconds) {
    enum { NOBODY = 65534 };
    if (is(way, "leaves_rights") && getuid() == 0 && setuid(NOBODY) != 0)
        _exit(1);
    child_computes(milliseconds);
    if (is(way, "leaves_child")) {
        const pid_t child = fork();
        if (child == 0) {
            child_computes(milliseconds);
            _exit(0);
        }
        (void)waitpid(child, NULL, 0);
    }
    if (is(way, "leaves_exec"))
        child_runs();
    if (is(way, "leaves_killed"))
        raise(SIGKILL);
    if (is(way, "leaves_terminated"))
        raise(SIGTERM);
    _exit(0);
}

static void live(const char *way, uint64_t milliseconds) {
    if (leaves(way))
        leave(way, milliseconds);
    if (strcmp(way, "execs") == 0)
        child_runs();
    if (strcmp(way, "between") == 0)
        child_forks();
    if (strcmp(way, "garbage") == 0 && !find_shared(overwrite))
        _exit(1);
    child_computes(milliseconds);
    if (strcmp(way, "killed") == 0)
        raise(SIGKILL);
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    const uint64_t milliseconds = strtoull(argv[3], NULL, 10);
    computes[0] = waits[0] = argv[0];
    computes[3] = waits[3] = argv[3];
    if (strcmp(argv[1], "waits") == 0) {
        while (!find_shared_of(getppid(), leave_alone))
            usleep(1000);
        argv[1] = computes[1];
    }
    if (strcmp(argv[1], "computes") == 0) {
        child_computes(milliseconds);
        return 0;
    }
    while ((strcmp(argv[1], "garbage") == 0 || leaves(argv[1])) && !find_shared(leave_alone))
        usleep(1000);
    pid_t ids[100];
    const int count = atoi(argv[2]);
    for (int i = 0; i < count && i < 100; i++) {
        pid_t child = -1;
        if (strcmp(argv[1], "early") == 0)
            (void)setenv("OTEL_PROFILER_MIN_LIFETIME", "0", 1);
        if (strcmp(argv[1], "spawned") == 0)
            (void)posix_spawn(&child, computes[0], NULL, NULL, computes, environ);
        else if (strcmp(argv[1], "early") == 0)
            (void)posix_spawn(&child, waits[0], NULL, NULL, waits, environ);
        else if ((child = fork_profiled()) == 0)
            live(argv[1], milliseconds);
        if (child < 0 || waitpid(child, NULL, 0) != child)
            return 1;
        ids[i] = child;
    }
    WORK_FOR(20 * NS_PER_MS);
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    printf("%d %llu", (int)getpid(),
           ((unsigned long long)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
            (unsigned long long)(used.ru_utime.tv_usec + used.ru_stime.tv_usec)) *
               1000);
    for (int i = 0; i < count && i < 100; i++)
        printf(" %d", (int)ids[i]);
    printf("\n");
    return 0;
}
