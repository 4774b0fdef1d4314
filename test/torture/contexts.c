/* Runs threads that publish contexts as no program should: garbage, records that are torn, freed or
 * unmapped while they are published, changed in a signal handler, left behind by threads that end,
 * by a library that is unloaded, and by forks. */
/* flags: -rdynamic -ldl */
#define _GNU_SOURCE
#include "../programs/spans.h"
#include "torture.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096, LARGE = 1 << 20 };

SPANS_EXPORT __thread struct span_record *otel_thread_ctx_v1;
static __thread struct span_record own;
static char library[PATH_MAX];

WORK(work_with_garbage)
WORK(work_with_unmapped)
WORK(work_with_handler)
WORK(work_with_library)

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 11;
}

/* --- garbage --- */

static void fill(struct span_record *record, uint64_t *state) {
    for (size_t i = 0; i < sizeof *record; i++)
        ((uint8_t *)record)[i] = (uint8_t)next_random(state);
    if (next_random(state) % 2)
        record->valid = 1;
}

static void *publish_garbage(void *unused) {
    uint64_t state = 1;
    (void)unused;
    while (time_left()) {
        const uint64_t random = next_random(&state) << 11 ^ next_random(&state);
        fill(&own, &state);
        switch (random % 4) {
        case 0: /* any address */
            otel_thread_ctx_v1 = (void *)random;
            break;
        case 1: /* an address of user space */
            otel_thread_ctx_v1 = (void *)(random >> 17);
            break;
        case 2: /* an address within existing memory */
            otel_thread_ctx_v1 = (void *)((uintptr_t)&own + random % LARGE - LARGE / 2);
            break;
        case 3:
            otel_thread_ctx_v1 = &own;
        }
        work_with_garbage(300);
    }
    otel_thread_ctx_v1 = NULL;
    return NULL;
}

/* --- memory that is freed --- */

static void publish_at_edge(uint64_t random) {
    char *const pages =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(pages != MAP_FAILED, "mmap");
    struct span_record *const record =
        (void *)(pages + PAGE - sizeof *record + random % sizeof *record);
    struct span_record made = {.valid = 1, .attribute_bytes = sizeof made.attributes};
    span_write(&made, 1, 1);
    memcpy(record, &made, sizeof made);
    otel_thread_ctx_v1 = record;
    work_with_unmapped(200);
    if (random & 1)
        munmap(pages + PAGE, PAGE);
    else
        mprotect(pages + PAGE, PAGE, PROT_NONE);
    work_with_unmapped(200);
    munmap(pages, 2 * PAGE);
    work_with_unmapped(200);
}

/* Publishes freed memory: free() gives a large block back by a call that no hook sees. */
static void publish_freed(void) {
    struct span_record *const record = malloc(LARGE);
    check(record != NULL, "malloc");
    record->valid = 1;
    record->attribute_bytes = UINT16_MAX;
    otel_thread_ctx_v1 = record;
    work_with_unmapped(200);
    free(record);
    work_with_unmapped(200);
}

static void *publish_what_goes(void *unused) {
    uint64_t state = 2;
    (void)unused;
    while (time_left()) {
        publish_at_edge(next_random(&state));
        publish_freed();
    }
    otel_thread_ctx_v1 = NULL;
    return NULL;
}

/* --- signal handlers --- */

static void change_in_handler(int number) {
    struct span_record *const before = otel_thread_ctx_v1;
    (void)number;
    span_change(&own, 2, 2);
    otel_thread_ctx_v1 = before;
}

static void *change_by_signal(void *unused) {
    (void)unused;
    while (time_left()) {
        otel_thread_ctx_v1 = NULL;
        span_swap(1, 1);
        pthread_kill(pthread_self(), SIGUSR1);
        work_with_handler(300);
        struct span_record *const record = otel_thread_ctx_v1;
        otel_thread_ctx_v1 = NULL;
        free(record);
    }
    return NULL;
}

/* --- ends --- */

static void *end_with_one(void *begin) {
    struct span_record on_stack = {.valid = 1};
    span_write(&on_stack, 3, 3);
    if (begin)
        ((void (*)(unsigned, unsigned, int))begin)(3, 3, 1);
    otel_thread_ctx_v1 = &on_stack;
    work_with_library(100);
    return NULL;
}

static void fork_with_one(void) {
    const pid_t child = fork();
    if (child == 0) {
        WORK_FOR(NS_PER_MS);
        _exit(0);
    }
    check(child > 0 && waitpid(child, NULL, 0) == child, "the child");
}

static void *unload_with_one(void *unused) {
    (void)unused;
    for (uint64_t turn = 0; time_left(); turn++) {
        pthread_t thread;
        void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        check(handle != NULL, "dlopen");
        void *const begin = dlsym(handle, "span_begin");
        check(begin != NULL, "dlsym");
        ((void (*)(unsigned, unsigned, int))begin)(3, 3, (int)(turn % 2));
        work_with_library(turn % 8 ? 100 : 5000);
        check(pthread_create(&thread, NULL, end_with_one, begin) == 0, "a thread");
        pthread_join(thread, NULL);
        if (turn % 16 == 0)
            fork_with_one();
        check(dlclose(handle) == 0, "dlclose");
        work_with_library(100);
    }
    return NULL;
}

static void *run(void *number) {
    static void *(*const all[THREADS])(void *) = {publish_garbage, publish_what_goes,
                                                  change_by_signal, unload_with_one};
    return all[(intptr_t)number % THREADS](NULL);
}

int main(int argc, char **argv) {
    const ssize_t size = readlink("/proc/self/exe", library, sizeof library - 40);
    library[size > 0 ? size : 0] = 0;
    strcpy(strrchr(library, '/'), "/../programs/spans.so");
    torture_begin(argc, argv);
    signal(SIGUSR1, change_in_handler);
    run_threads(run, THREADS);
    SHARE(work_with_garbage);
    SHARE(work_with_unmapped);
    SHARE(work_with_handler);
    SHARE(work_with_library);
    return torture_end();
}
