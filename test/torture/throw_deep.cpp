// Runs threads that throw through ten frames with destructors, rethrow, and catch by type.
#include <cstdint>

#include "torture.h"

#include <stdexcept>
#include <string>

WORK(work_between_throws)

static volatile uint64_t sink;

static thread_local int destroyed;

struct guard {
    ~guard() {
        destroyed++;
    }
};

NOIPA static void pass_down(int depth, int kind) {
    guard on_the_way;
    if (depth > 0) {
        pass_down(depth - 1, kind);
        sink = sink + 1;
        return;
    }
    if (kind % 3 == 0)
        throw kind;
    if (kind % 3 == 1)
        throw std::runtime_error("text " + std::to_string(kind));
    throw std::string(200, 'x');
}

NOIPA static void rethrow(int kind) {
    try {
        pass_down(5, kind);
    } catch (...) {
        guard on_the_way;
        throw;
    }
}

static void one(int kind) {
    destroyed = 0;
    try {
        if (kind % 2)
            rethrow(kind);
        else
            pass_down(9, kind);
        check(false, "nothing was thrown");
    } catch (int value) {
        check(kind % 3 == 0 && value == kind, "an int");
    } catch (const std::exception &error) {
        check(kind % 3 == 1 && error.what() == "text " + std::to_string(kind), "an exception");
    } catch (const std::string &text) {
        check(kind % 3 == 2 && text.size() == 200, "a string");
    }
    check(destroyed == (kind % 2 ? 7 : 10), "every destructor ran once");
}

static void *throw_often(void *) {
    for (int kind = 0; time_left(); kind++) {
        one(kind);
        if (kind % 64 == 0)
            work_between_throws(100);
    }
    return nullptr;
}

int main(int argc, char **argv) {
    torture_begin(argc, argv);
    run_threads(throw_often, THREADS);
    SHARE(work_between_throws);
    return torture_end();
}
