/* Has threads that work for spans of known cost, a thousand of them a second each, in functions
 * that are named after the span: span_1 to span_7. The cost of span n is n / 4 milliseconds of CPU
 * time; the next span is drawn at random.
 *
 * usage: works_for_spans THREADS MILLISECONDS swap|fixed|fork [LIBRARY [ROUNDS]]
 *
 * Each thread works for so much CPU time. swap: each span has a new record; fixed: a thread has one
 * record, which it changes; fork: as swap, and then again in a child. The variable is the program's
 * own, or that of LIBRARY, which is loaded for the program alone (RTLD_LOCAL), and in several
 * rounds unloaded and loaded again. Built with -DLINKED, it is that of the library that it is
 * linked to. Prints for each span its number and its CPU time in microseconds. */
/* flags: -rdynamic -ldl */
#define _GNU_SOURCE
#include "cpu_work.h"
#include "noipa.h"
#include "spans.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SPANS = 7, MOST_THREADS = 64 };

#ifdef LINKED
void span_begin(unsigned thread, unsigned span, int fixed);
void span_end(int fixed);
#else
SPANS_EXPORT __thread struct span_record *otel_thread_ctx_v1;
static __thread struct span_record own;

static void span_begin(unsigned thread, unsigned span, int fixed) {
    if (fixed)
        span_change(&own, thread, span);
    else
        span_swap(thread, span);
}

static void span_end(int fixed) {
    struct span_record *const old = otel_thread_ctx_v1;
    otel_thread_ctx_v1 = NULL;
    SPANS_FENCE;
    if (!fixed)
        free(old);
}
#endif

static void (*begin)(unsigned thread, unsigned span, int fixed) = span_begin;
static void (*end)(int fixed) = span_end;
static bool fixed;
static uint64_t each;
static _Atomic uint64_t cost[SPANS + 1];

#define SPAN(n)                                                                                    \
    NOIPA static void span_##n(void) {                                                             \
        void *volatile block = malloc(4096);                                                       \
        free(block);                                                                               \
        WORK_FOR((n)*NS_PER_MS / 4);                                                               \
    }
SPAN(1)
SPAN(2)
SPAN(3)
SPAN(4)
SPAN(5)
SPAN(6)
SPAN(7)
static void (*const work[])(void) = {NULL, span_1, span_2, span_3, span_4, span_5, span_6, span_7};

static void *run(void *arg) {
    const unsigned thread = (unsigned)(uintptr_t)arg;
    uint64_t random = thread;
    const uint64_t until = cpu_now() + each;
    while (cpu_now() < until) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const unsigned span = 1 + (unsigned)(random >> 33) % SPANS;
        begin(thread, span, fixed);
        const uint64_t start = cpu_now();
        work[span]();
        cost[span] += cpu_now() - start;
        end(fixed);
    }
    return NULL;
}

static bool find_in(void *library) {
    *(void **)&begin = library ? dlsym(library, "span_begin") : NULL;
    *(void **)&end = library ? dlsym(library, "span_end") : NULL;
    return begin && end;
}

static void run_threads(uintptr_t count) {
    pthread_t threads[MOST_THREADS];
    for (uintptr_t i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, run, (void *)(i + 1));
    for (uintptr_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* Runs in a child, whose parent waits. */
static int run_in_child(uintptr_t count) {
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        run_threads(count);
        exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : 1;
}

int main(int argc, char **argv) {
    const uintptr_t count = argc > 3 ? strtoul(argv[1], NULL, 10) : 0;
    const int rounds = argc > 5 ? atoi(argv[5]) : 1;
    if (count == 0 || count > MOST_THREADS)
        return 2;
    each = strtoul(argv[2], NULL, 10) * NS_PER_MS;
    fixed = strcmp(argv[3], "fixed") == 0;
    for (int i = 0; i < rounds; i++) {
        void *const library = argc > 4 ? dlopen(argv[4], RTLD_NOW | RTLD_LOCAL) : NULL;
        if (argc > 4 && !find_in(library))
            return 2;
        run_threads(count);
        if (rounds > 1 && dlclose(library) != 0)
            return 2;
    }
    for (int span = 1; span <= SPANS; span++)
        printf("%d %llu\n", span, (unsigned long long)(cost[span] / NS_PER_US));
    fflush(stdout);
    return strcmp(argv[3], "fork") == 0 ? run_in_child(count) : 0;
}
