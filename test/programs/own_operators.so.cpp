// Is a library for C programs that brings its own operator new and delete.
#include <cstddef>
#include <cstdlib>

static int calls;

void *operator new(std::size_t size) {
    calls++;
    return std::malloc(size);
}
void operator delete(void *object) noexcept {
    calls++;
    std::free(object);
}
void operator delete(void *object, std::size_t) noexcept {
    calls++;
    std::free(object);
}

extern "C" __attribute__((visibility("default"))) int count_own_calls() {
    for (int i = 0; i < 100; i++) {
        auto *volatile object = new long(i);
        delete object;
    }
    return calls;
}
