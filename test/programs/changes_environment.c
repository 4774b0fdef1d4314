/* Changes its environment over and over, with one thread of its own, and checks that the variables
 * have the values that it has set.
 *
 * usage: changes_environment MILLISECONDS
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VARIABLES = 200, PIECES = 64 };

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int fill(void) {
    char name[32];
    for (int i = 0; i < VARIABLES; i++) {
        snprintf(name, sizeof name, "VARIABLE_%d", i);
        if (setenv(name, name, 1) != 0 || strcmp(getenv(name), name) != 0)
            return 0;
    }
    return 1;
}

/* Allocates the memory that libc has freed, and writes other data into it. */
static void reuse_memory(void) {
    void *pieces[PIECES];
    for (int i = 0; i < PIECES; i++) {
        const size_t size = VARIABLES * sizeof(char *) / (size_t)(1 + i % 4);
        pieces[i] = malloc(size);
        memset(pieces[i], 0x5a, size);
    }
    for (int i = 0; i < PIECES; i++)
        free(pieces[i]);
}

int main(int argc, char **argv) {
    const double end = milliseconds() + (argc > 1 ? atof(argv[1]) : 1000);
    while (milliseconds() < end) {
        if (!fill())
            return 1;
        clearenv();
        reuse_memory();
    }
    if (getenv("VARIABLE_0") || getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
        return 2;
    puts("changed");
    return 0;
}
