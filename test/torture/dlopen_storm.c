/* Loads, calls and unloads libraries with TLS in some threads, while others allocate and work; now
 * and then in a namespace of their own. */
#define _GNU_SOURCE
#include "torture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>

enum { COPIES = 3, NAMESPACES = 6, TURNS = 2000 };

static char copies[COPIES][PATH_MAX];

WORK(work_beside_loading)

/* Copies the plugin under several names, because a library that one thread still uses is not
 * unloaded. */
static void copy_plugin(void) {
    char self[PATH_MAX];
    char source[PATH_MAX + 32];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = 0;
    *strrchr(self, '/') = 0;
    snprintf(source, sizeof source, "%s/../programs/plugin.so", self);
    for (int i = 0; i < COPIES; i++) {
        snprintf(copies[i], PATH_MAX, "/tmp/torture_plugin.XXXXXX");
        const int target = mkstemp(copies[i]);
        const int from = open(source, O_RDONLY | O_CLOEXEC);
        check(target >= 0 && from >= 0 && sendfile(target, from, NULL, 10 << 20) > 0, "the copy");
        close(from);
        close(target);
    }
}

static void *call_back(uint64_t value) {
    void *const block = malloc(100 + (value & 1023));
    memset(block, (int)value, 100);
    free(block);
    return (void *)(uintptr_t)(value * 2);
}

static void use(void *library, uint64_t value) {
    void *(*work)(void *(*)(uint64_t), uint64_t, int);
    void *const symbol = dlsym(library, "plugin_work");
    check(symbol != NULL, "dlsym");
    memcpy(&work, &symbol, sizeof work);
    check((uintptr_t)work(call_back, value, TURNS) == value * 2, "the plugin's result");
}

static void *load_often(void *number) {
    const int which = (int)(intptr_t)number;
    for (uint64_t i = 0; time_left(); i++) {
        void *const library = dlopen(copies[which % COPIES], i % 2 ? RTLD_NOW : RTLD_LAZY);
        check(library != NULL, "dlopen");
        use(library, i);
        check(dlclose(library) == 0, "dlclose");
    }
    return NULL;
}

static void *short_thread(void *unused) {
    void *volatile block = malloc(100);
    free(block);
    return unused;
}

static void *allocate_often(void *unused) {
    char *blocks[64] = {NULL};
    for (unsigned i = 0; time_left(); i++) {
        char **const block = &blocks[i * 7 % 64];
        check(!*block || **block == (char)(i * 7 % 64), "the contents of a block");
        free(*block);
        *block = malloc(16 + i % 5000);
        **block = (char)(i * 7 % 64);
        if (i % 4096 == 0) {
            run_threads(short_thread, 2);
            work_beside_loading(1000);
        }
    }
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    return unused;
}

static void *torture(void *number) {
    return (intptr_t)number < 2 ? load_often(number) : allocate_often(NULL);
}

int main(int argc, char **argv) {
    torture_begin(argc, argv);
    copy_plugin();
    for (uint64_t i = 0; i < NAMESPACES; i++) {
        void *const library = dlmopen(LM_ID_NEWLM, copies[i % COPIES], RTLD_NOW);
        check(library != NULL, "dlmopen");
        use(library, i);
        check(dlclose(library) == 0, "dlclose of a namespace");
    }
    run_threads(torture, THREADS);
    for (int i = 0; i < COPIES; i++)
        unlink(copies[i]);
    SHARE(work_beside_loading);
    return torture_end();
}
