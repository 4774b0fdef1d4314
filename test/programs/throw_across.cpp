// Throws through five shared objects: catch, rethrow, nested, pthread_exit and pthread_cancel;
// prints which destructors ran and which exceptions were caught.
//
// usage: throw_across [LOOPS]   (LOOPS further throws, quietly, while the profiler samples)
#include "relay.h"

#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

static station stations[5];

static void load() {
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    const std::string folder(path, static_cast<size_t>(size));
    for (int i = 0; i < 5; i++) {
        const std::string name =
            folder.substr(0, folder.rfind('/')) + "/throw_" + std::to_string(i + 1) + ".so";
        void *const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            std::fprintf(stderr, "%s\n", dlerror());
            std::exit(2);
        }
        stations[i].relay = reinterpret_cast<relay_function *>(dlsym(library, "relay"));
    }
}

static void pass(void (*end)(void *), void *arg, int objects, bool quiet = false) {
    stations[0].relay({stations + 1, objects - 1, end, arg, quiet});
}

static void throw_int(void *) {
    throw 7;
}

static void throw_error(void *) {
    throw std::runtime_error("from the depth");
}

static void exit_thread(void *) {
    pthread_exit(reinterpret_cast<void *>(5));
}

static void wait_for_cancel(void *ready) {
    static_cast<volatile int *>(ready)[0] = 1;
    for (;;)
        pause();
}

static void *exiting(void *) {
    pass(exit_thread, nullptr, 5);
    return nullptr;
}

static void *cancelled(void *ready) {
    pass(wait_for_cancel, ready, 5);
    return nullptr;
}

static void say_nested(const std::exception &error) {
    std::printf("caught %s\n", error.what());
    try {
        std::rethrow_if_nested(error);
    } catch (const int &value) {
        std::printf("with %d inside\n", value);
    }
}

static void with_threads() {
    pthread_t thread;
    void *result;
    pthread_create(&thread, nullptr, exiting, nullptr);
    pthread_join(thread, &result);
    std::printf("exited with %ld\n", reinterpret_cast<long>(result));

    volatile int ready = 0;
    pthread_create(&thread, nullptr, cancelled, const_cast<int *>(&ready));
    while (!ready)
        usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    std::printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
}

int main(int argc, char **argv) {
    load();
    try {
        pass(throw_int, nullptr, 2);
    } catch (const int &value) {
        std::printf("caught %d\n", value);
    }
    try {
        pass(throw_int, nullptr, 5);
    } catch (const std::exception &error) {
        say_nested(error);
    }
    try {
        pass(throw_error, nullptr, 5);
    } catch (const std::exception &error) {
        say_nested(error);
    }
    with_threads();
    long caught = 0;
    for (long i = argc > 1 ? std::atol(argv[1]) : 0; i > 0; i--) {
        try {
            pass(throw_error, nullptr, 5, true);
        } catch (const std::exception &) {
            caught++;
        }
    }
    std::printf("%ld more\n", caught);
    return 0;
}
