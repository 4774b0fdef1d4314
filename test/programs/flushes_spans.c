/* Makes spans, each named by an argument, with an export behind each unless the argument ends in
 * `+`. Every span allocates in a function of its own, 100 objects at a time:
 *     short    once
 *     long     twice, and sleeps for longer than the bound in between
 *     passed   as `long`, but each time on another thread
 *     begun    once; the span goes on in `resumed`, which sleeps before it allocates
 *     sleeps   never: it sleeps in one call, in a thread of its own
 *     none     as `long`, without a span
 *     forks    once, and sleeps until its span is long; then its child allocates once in that span
 *              and as `long` in a span of the child's own; then the parent allocates again
 * Prints how long each span lasted from its begin to its end, as a list of ["name", nanoseconds],
 * and how long the child of `forks` was in its parent's span, as "child".
 */
#define _GNU_SOURCE
#include "../../shim/otelprof.h"
#include "flush_timeout.h"
#include "forked.h"
#include "sites.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OBJECTS = 100, OBJECT_BYTES = 1000, NAP_US = 240 * 1000 };

static const uint8_t trace_id[16] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                                     0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
static uint8_t span_id[8] = {1};
static long *child_lasted; /* shared with the child */

static long now_nano(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static inline __attribute__((always_inline)) void churn(void) {
    for (int i = 0; i < OBJECTS; i++) {
        void *volatile object = malloc(OBJECT_BYTES);
        free(object);
    }
    __asm__ volatile("");
}

/* Takes longer than the bound from its first sample to its last. */
static inline __attribute__((always_inline)) void churn_for_long(void) {
    churn();
    usleep(NAP_US);
    churn();
}

NOIPA static void in_short(void) {
    churn();
}

NOIPA static void in_long(void) {
    churn_for_long();
}

NOIPA static void *passed_on(void *argument) {
    otelprof_span_set(trace_id, span_id);
    churn();
    KEEP(argument);
    return argument;
}

NOIPA static void in_passed(void) {
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, passed_on, NULL);
        pthread_join(thread, NULL);
        usleep(i == 0 ? NAP_US : 0);
    }
}

NOIPA static void in_begun(void) {
    churn();
}

NOIPA static void in_resumed(void) {
    usleep(NAP_US);
    churn();
}

NOIPA static void *sleeps(void *argument) {
    otelprof_span_set(trace_id, span_id);
    usleep(2 * NAP_US);
    KEEP(argument);
    return argument;
}

NOIPA static void in_sleeps(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, sleeps, NULL);
    pthread_join(thread, NULL);
}

NOIPA static void in_none(void) {
    in_long();
    KEEP(span_id[0]);
}

NOIPA static void child_in_parents_span(void) {
    churn();
}

NOIPA static void child_in_own_span(void) {
    churn_for_long();
}

NOIPA static void in_forks(void) {
    churn();
    usleep(NAP_US);
    fflush(stdout);
    const pid_t child = fork_profiled();
    if (child == 0) {
        const long begun = now_nano();
        child_in_parents_span();
        *child_lasted = now_nano() - begun;
        otelprof_flush(FLUSH_TIMEOUT_MS);
        span_id[7] = 1;
        otelprof_span_set(trace_id, span_id);
        child_in_own_span();
        otelprof_flush(FLUSH_TIMEOUT_MS);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    churn();
}

static const struct step {
    const char *name;
    void (*function)(void);
} steps[] = {{"short", in_short}, {"long", in_long},       {"passed", in_passed},
             {"begun", in_begun}, {"resumed", in_resumed}, {"sleeps", in_sleeps},
             {"none", in_none},   {"forks", in_forks}};

static bool is_named(const char *argument, const char *name) {
    const size_t size = strlen(name);
    return strncmp(argument, name, size) == 0 && (!argument[size] || argument[size] == '+');
}

/* Takes the step that the argument names, in a span of its own, except for `resumed` and `none`.
 * Returns false if no step has that name. */
static bool take(const char *argument, const char *comma) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (!is_named(argument, steps[i].name))
            continue;
        const long begun = now_nano();
        span_id[0] += strcmp(steps[i].name, "resumed") != 0;
        if (strcmp(steps[i].name, "none") != 0)
            otelprof_span_set(trace_id, span_id);
        steps[i].function();
        otelprof_span_clear();
        printf("%s[\"%s\", %ld]", comma, steps[i].name, now_nano() - begun);
        if (*child_lasted)
            printf(", [\"child\", %ld]", *child_lasted);
        *child_lasted = 0;
        return true;
    }
    return false;
}

int main(int argc, char **argv) {
    static char line[65536];
    child_lasted =
        mmap(NULL, sizeof *child_lasted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (child_lasted == MAP_FAILED)
        return 4;
    setvbuf(stdout, line, _IOFBF, sizeof line);
    printf("[");
    for (int i = 1; i < argc; i++) {
        if (!take(argv[i], i == 1 ? "" : ", "))
            return 2;
        if (!strchr(argv[i], '+') && !otelprof_flush(FLUSH_TIMEOUT_MS))
            return 3;
    }
    printf("]\n");
    return 0;
}
