/* Starts a program many times, by fork and exec, and prints the nanoseconds each took from fork to
 * its end, one a line.
 *
 * usage: bench_spawn TIMES [LIBRARY]   (LIBRARY: preloaded into the program alone, with
 *                                    the OTEL_ variables of this process)
 *        bench_spawn -s TIMES     (fork and exec of /bin/true under this process's own preload)
 *        bench_spawn -f TIMES [MEBIBYTES [MILLISECONDS]]
 *            (fork alone, to the end of a child that does nothing, likewise; out of a process that
 *            has written that much memory and lived that long)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ENTRIES = 64 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Runs a program. environment: of /bin/true, or NULL: nothing is executed. */
static double spawn(char *const *environment) {
    char *const arguments[] = {(char[]){"true"}, NULL};
    const double start = now();
    const pid_t pid = fork();
    if (pid == 0) {
        if (environment)
            execve("/bin/true", arguments, environment);
        _exit(environment ? 127 : 0);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        exit(1);
    return now() - start;
}

/* Appends the profiler's variables of this process to the environment. */
static void add_configuration(char **environment, size_t count) {
    extern char **environ;
    for (char **entry = environ; *entry && count < MAX_ENTRIES - 1; entry++)
        if (strncmp(*entry, "OTEL_", 5) == 0)
            environment[count++] = *entry;
}

/* Runs without, with, and without again in turns, so that the pair has a measure of its noise. */
static void alternate(int times, const char *library) {
    static char preload[4096];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
    char *const without[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
    char *with[MAX_ENTRIES] = {(char[]){"PATH=/usr/bin:/bin"}, preload};
    add_configuration(with, 2);
    for (int i = 0; i < times; i++) {
        const double first = spawn(without);
        const double second = spawn(with);
        printf("%.0f %.0f %.0f\n", first, second, spawn(without));
    }
}

static void grow_and_wait(size_t mebibytes, long milliseconds) {
    char *const memory = malloc(mebibytes << 20);
    for (size_t at = 0; memory && at < mebibytes << 20; at += 4096)
        *(char volatile *)&memory[at] = 1;
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

int main(int argc, char **argv) {
    extern char **environ;
    if (argc > 3)
        grow_and_wait(strtoull(argv[3], NULL, 10), argc > 4 ? atol(argv[4]) : 0);
    if (argc > 2 && (strcmp(argv[1], "-s") == 0 || strcmp(argv[1], "-f") == 0)) {
        char *const *const environment = argv[1][1] == 's' ? environ : NULL;
        for (int i = 0; i < atoi(argv[2]); i++)
            printf("%.0f\n", spawn(environment));
        return 0;
    }
    if (argc < 3)
        return 2;
    alternate(atoi(argv[1]), argv[2]);
    return 0;
}
