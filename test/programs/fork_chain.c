/* Forks when its work has been exported; its child does the same, and so on. Each generation prints
 * how much anonymous memory it has, in KiB: anonymous_memory().
 *
 * usage: fork_chain GENERATIONS */
#define _GNU_SOURCE
#include "awaits_export.h"
#include "forked.h"
#include "noipa.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKS = 70 };

static volatile unsigned sink;

NOIPA static void work(void) {
    for (unsigned i = 0; i < 200000; i++)
        sink += i;
    void *volatile block = malloc(10000);
    free(block);
}

/* Returns the resident anonymous memory of the process, in KiB, including memory that it has
 * inherited from its parent. */
static long anonymous_memory(void) {
    char line[256];
    long kibibytes = -1;
    FILE *const status = fopen("/proc/self/status", "r");
    while (status && kibibytes < 0 && fgets(line, sizeof line, status))
        (void)sscanf(line, "RssAnon: %ld kB", &kibibytes);
    if (status)
        fclose(status);
    return kibibytes;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    for (int generation = 0; generation < atoi(argv[1]); generation++) {
        int status = 0;
        for (int i = 0; i < WORKS; i++)
            work();
        await_export();
        printf("%ld\n", anonymous_memory());
        fflush(stdout);
        const pid_t child = fork_profiled();
        if (child == 0)
            continue;
        return child > 0 && waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 3;
    }
    return 0;
}
