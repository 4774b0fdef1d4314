/* A process that forks when it has lived for a while, whose child does the same, and so on. Each
 * generation says how often libc's file is mapped from its beginning: once by the loader, and by
 * whoever reads its symbols.
 *
 * usage: fork_chain GENERATIONS MILLISECONDS   (that each lives before it forks; the first
 * until somebody reads symbols, at most a minute) */
#include "noipa.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 600 };

static volatile unsigned sink;

NOIPA static void work(void) {
    for (unsigned i = 0; i < 200000; i++)
        sink += i;
    void *volatile block = malloc(10000);
    free(block);
}

static void live(int milliseconds) {
    for (int i = 0; i < milliseconds; i += 10) {
        work();
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
}

static int times_mapped(const char *name) {
    char line[PATH_MAX + 128];
    int count = 0;
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        count += strstr(line, name) && strstr(line, " 00000000 ");
    if (maps)
        fclose(maps);
    return count;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    for (int generation = 0; generation < atoi(argv[1]); generation++) {
        int status = 0;
        live(atoi(argv[2]));
        for (int i = 0; i < PATIENCE && generation == 0 && times_mapped("/libc.so.6") < 2; i++)
            live(100);
        printf("%d\n", times_mapped("/libc.so.6"));
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0)
            continue;
        return child > 0 && waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 3;
    }
    return 0;
}
