// flags: -rdynamic
/* Loads libpython while it runs. Python runs on the main thread, in a subinterpreter and on a
 * thread that Python has not made: each runs a function of its own, for 20 ms. At the function's
 * end the thread takes its only CPU sample, by getppid(), which this program defines. An export
 * before that gives the profiler time to find Python. Then Python is finalized and unloaded, and
 * everything is done again. embeds_python LIBPYTHON */
#include "../../shim/otelprof.h"
#include "cpu_sample.h"
#include "flush_timeout.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct python {
    void (*initialize)(int signals);
    int (*finalize)(void);
    int (*run)(const char *code);
    int (*ensure)(void);
    void (*release)(int state);
    void *(*save)(void);
    void (*restore)(void *thread);
    void *(*begin)(void);
    void (*end)(void *thread);
    void *(*swap)(void *thread);
} python;

/* Is found by the posix module, which is built into libpython, before libc's function. */
__attribute__((visibility("default"))) pid_t getppid(void) {
    TAKE_CPU_SAMPLE();
    return 1;
}

static const char *const code = "import posix, time\n"
                                "def burns_%s():\n"
                                "    return list(map(lambda i: i * i, range(100)))\n"
                                "def runs_%s():\n"
                                "    end = time.thread_time() + 0.02\n"
                                "    while time.thread_time() < end:\n"
                                "        burns_%s()\n"
                                "    posix.getppid()\n"
                                "runs_%s()\n";

static void run_named(const char *name) {
    char text[512];
    cpu_samples_hold();
    snprintf(text, sizeof text, code, name, name, name, name);
    if (python.run(text) != 0)
        exit(3);
}

static void *run_in_thread(void *name) {
    const int state = python.ensure();
    run_named(name);
    python.release(state);
    return NULL;
}

static void run_in_subinterpreter(const char *name) {
    void *const mine = python.swap(NULL);
    python.swap(mine);
    void *const other = python.begin();
    run_named(name);
    python.end(other);
    python.swap(mine);
}

static void find(void *library, const char *name, void *function) {
    void *const found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    memcpy(function, &found, sizeof found);
}

static void *load(const char *path) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    find(library, "Py_InitializeEx", &python.initialize);
    find(library, "Py_FinalizeEx", &python.finalize);
    find(library, "PyRun_SimpleString", &python.run);
    find(library, "PyGILState_Ensure", &python.ensure);
    find(library, "PyGILState_Release", &python.release);
    find(library, "PyEval_SaveThread", &python.save);
    find(library, "PyEval_RestoreThread", &python.restore);
    find(library, "Py_NewInterpreter", &python.begin);
    find(library, "Py_EndInterpreter", &python.end);
    find(library, "PyThreadState_Swap", &python.swap);
    return library;
}

static void do_all(const char *path, const char *main_name, const char *thread_name,
                   const char *sub_name) {
    void *const library = load(path);
    pthread_t thread;
    python.initialize(0);
    if (!otelprof_flush(FLUSH_TIMEOUT_MS))
        exit(4);
    run_named(main_name);
    run_in_subinterpreter(sub_name);
    void *const saved = python.save();
    if (pthread_create(&thread, NULL, run_in_thread, (void *)(size_t)thread_name) == 0)
        pthread_join(thread, NULL);
    python.restore(saved);
    python.finalize();
    dlclose(library);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    do_all(argv[1], "main", "thread", "sub");
    do_all(argv[1], "again", "thread_again", "sub_again");
    return 0;
}
