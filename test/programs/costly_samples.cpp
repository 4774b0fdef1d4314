// Is a thousand frames deep, while another thread unloads libraries all the time: nothing that a
// sampler has learnt about the code stays valid, so each sample is as dear as the first.
//
// usage: costly_samples MILLISECONDS LIBRARY
// flags: -ftemplate-depth=2000
#include "cpu_work.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>

enum { DEPTH = 1000, TURNS = 20 };

static volatile uint64_t sink;
static uint64_t nanoseconds;
static std::atomic<bool> over;

NOIPA static void at_the_bottom() {
    WORK_FOR(nanoseconds / TURNS);
}

// Is a function for each frame, so that each frame has a rule of its own.
template <int N> NOIPA static void descend() {
    descend<N - 1>();
    sink = sink + N;
}
template <> void descend<0>() {
    at_the_bottom();
    sink = sink + 1;
}

static void *unload_often(void *path) {
    while (!over) {
        void *const library = dlopen(static_cast<char *>(path), RTLD_NOW);
        if (library)
            dlclose(library);
    }
    return nullptr;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 3)
        return 2;
    nanoseconds = std::strtoull(argv[1], nullptr, 10) * NS_PER_MS;
    pthread_create(&thread, nullptr, unload_often, argv[2]);
    for (int i = 0; i < TURNS; i++)
        descend<DEPTH>();
    over = true;
    pthread_join(thread, nullptr);
    std::puts("done");
    return 0;
}
