/* Unloads a library whose thread-local memory a thread has used, and loads a publisher of spans:
 * this gets the library's module number, and its variable is at the place of one of the library's
 * pointers, or far behind the end of the library's memory. The thread, which never calls the
 * publisher, works on.
 *
 * usage: reuses_number USED PUBLISHER
 *
 * USED: this file, built with -DUSED. PUBLISHER: spans.so, or this file, built with
 * -DFAR_PUBLISHER. Prints the numbers of both modules. */
/* flags: -ldl */
#define _GNU_SOURCE
#include "spans.h"

#ifdef USED
enum { POINTERS = 32 }; /* one of the pointers is where the variable will be */
static __thread struct span_record *pointers[POINTERS];
static struct span_record *volatile last;

SPANS_EXPORT void use(void) {
    struct span_record *const record = calloc(1, sizeof *record);
    span_write(record, 1, 5);
    record->valid = 1;
    for (int i = 0; i < POINTERS; i++)
        pointers[i] = record;
    last = pointers[POINTERS - 1];
}
#elif defined(FAR_PUBLISHER)
SPANS_EXPORT __thread struct span_record *otel_thread_ctx_v1;
SPANS_EXPORT __thread char much[4 << 20];

SPANS_EXPORT void *own(void) {
    return much[0] ? (void *)otel_thread_ctx_v1 : (void *)much;
}
#else
#include "cpu_work.h"
#include "noipa.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static void (*use)(void);
static _Atomic bool is_used;
static _Atomic bool is_loaded;

NOIPA void works_on(void) {
    WORK_FOR(400 * NS_PER_MS);
}

static void *run(void *unused) {
    use();
    is_used = true;
    while (!is_loaded)
        usleep(1000);
    works_on();
    return unused;
}

static size_t number_of(void *library) {
    size_t number = 0;
    dlinfo(library, RTLD_DI_TLS_MODID, &number);
    return number;
}

int main(int argc, char **argv) {
    pthread_t thread;
    void *const used = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    *(void **)&use = used ? dlsym(used, "use") : NULL;
    if (!use || pthread_create(&thread, NULL, run, NULL) != 0)
        return 2;
    while (!is_used)
        usleep(1000);
    const size_t number = number_of(used);
    dlclose(used);
    void *const publisher = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    if (!publisher)
        return 2;
    printf("%zu %zu\n", number, number_of(publisher));
    usleep(100000); /* the profiler finds it before the thread has done its work */
    is_loaded = true;
    pthread_join(thread, NULL);
    return 0;
}
#endif
