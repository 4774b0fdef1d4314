/* Embeds CPython again and again: loads a libpython, begins an interpreter, runs it in several
 * threads that Python did not create, ends it, and begins again; unloads the library after every
 * third interpreter. Without a libpython it only uses CPU time. */
/* flags: -ldl */
#define _GNU_SOURCE
#include "torture.h"

#include <dlfcn.h>
#include <stdlib.h>

WORK(work_between_interpreters)

static const char *const libraries[] = {"libpython3.11.so.1.0", "libpython3.12.so.1.0",
                                        "libpython3.13.so.1.0", "libpython3.14.so.1.0",
                                        "libpython3.15.so.1.0"};

static const char *const script =
    "def fib(n):\n"
    "    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
    "sorted(range(50), key=lambda x: fib(x % 12))\n"
    "def made(x):\n"
    "    exec(compile('y = [str(i) for i in range(30)]', '/made/%d.py' % x, 'exec'), {})\n"
    "for i in range(20): made(i)\n";

static struct {
    void *library;
    void (*begin)(int);
    int (*end)(void);
    int (*run)(const char *);
    int (*ensure)(void);
    void (*release)(int);
    void *(*save)(void);
    void (*restore)(void *);
} python;

static const char *library_name(void) {
    const char *const told = getenv("TORTURE_LIBPYTHON");
    if (told)
        return told;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *const found = dlopen(libraries[i], RTLD_LAZY);
        if (found) {
            dlclose(found);
            return libraries[i];
        }
    }
    return NULL;
}

static void load(const char *name) {
    python.library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    check(python.library != NULL, "dlopen");
    *(void **)&python.begin = dlsym(python.library, "Py_InitializeEx");
    *(void **)&python.end = dlsym(python.library, "Py_FinalizeEx");
    *(void **)&python.run = dlsym(python.library, "PyRun_SimpleString");
    *(void **)&python.ensure = dlsym(python.library, "PyGILState_Ensure");
    *(void **)&python.release = dlsym(python.library, "PyGILState_Release");
    *(void **)&python.save = dlsym(python.library, "PyEval_SaveThread");
    *(void **)&python.restore = dlsym(python.library, "PyEval_RestoreThread");
    check(python.begin && python.end && python.run && python.ensure && python.release &&
              python.save && python.restore,
          "a function of libpython");
}

static void run_script(void) {
    const int state = python.ensure();
    check(python.run(script) == 0, "the script");
    python.release(state);
}

static void *runs_python(void *unused) {
    for (int i = 0; i < 5; i++) {
        run_script();
        work_between_interpreters(300);
    }
    return unused;
}

static void live_once(void) {
    python.begin(0);
    check(python.run(script) == 0, "the first script");
    void *const state = python.save();
    run_threads(runs_python, THREADS);
    python.restore(state);
    check(python.end() == 0, "the end of the interpreter");
}

int main(int argc, char **argv) {
    torture_begin(argc, argv);
    const char *const name = library_name();
    while (name && time_left()) {
        load(name);
        for (int i = 0; i < 3; i++) {
            live_once();
            work_between_interpreters(2000);
        }
        dlclose(python.library);
        work_between_interpreters(3000);
    }
    if (!name)
        work_between_interpreters(200000);
    SHARE(work_between_interpreters);
    return torture_end();
}
