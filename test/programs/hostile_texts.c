/* Gives the profiler a hostile text wherever it can: in labels, in the names of threads, in the
 * process's resource, and by a library with hostile names. It works in that library and waits for a
 * lock of it, until a file exists: hostile_texts FILE LIBRARY TEXT. */
/* flags: -Ishim -ldl -lpthread */
#include <dlfcn.h>
#include <otelprof.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char *until;
static const char *text;
static void (*work)(void);
static void (*wait_for_lock)(void);

static int goes_on(void) {
    return access(until, F_OK) != 0;
}

static void describe(void) {
    static const uint8_t trace_id[16] = {1};
    static const uint8_t span_id[8] = {2};
    otelprof_span_set(trace_id, span_id);
    otelprof_label_push(text, text);
    otelprof_label_push("tenant", text);
    prctl(PR_SET_NAME, text);
}

static void *waits(void *unused) {
    describe();
    while (goes_on()) {
        wait_for_lock();
        usleep(1000);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc != 4)
        return 2;
    until = argv[1];
    text = argv[3];
    const struct otelprof_attribute described[] = {
        {"service.name", text}, {"service.version", text}, {text, text}};
    void *const library = dlopen(argv[2], RTLD_NOW);
    if (!library)
        return fprintf(stderr, "%s\n", dlerror()), 3;
    work = (void (*)(void))dlsym(library, "hostile_work");
    wait_for_lock = (void (*)(void))dlsym(library, "hostile_wait");
    otelprof_resource_publish(described, sizeof described / sizeof *described);
    describe();
    pthread_create(&thread, NULL, waits, NULL);
    while (goes_on()) {
        work();
        usleep(1000);
    }
    pthread_join(thread, NULL);
    return 7;
}
