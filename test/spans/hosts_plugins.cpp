/* An executable and libraries that are loaded later, each with a copy of the API: the span that
 * became active last counts, whose it is. A library that is unloaded leaves nothing behind. Says
 * "ok", or what was seen instead. Its argument is plugin.so. */
#include "published.h"

typedef uint64_t in_span_function(uint64_t number, uint64_t (*inside)());

static in_span_function *in_span;

static int fail(int line) {
    std::printf("line %d: %llu is published\n", line, (unsigned long long)published());
    return 1;
}
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return fail(__LINE__);                                                                 \
    } while (0)

static uint64_t in_own_span() {
    api::trace::Scope scope(make_span(3));
    return published();
}

static void *load(const char *path) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    in_span = library ? reinterpret_cast<in_span_function *>(dlsym(library, "in_span")) : nullptr;
    /* it is looked for as soon as it is loaded */
    for (int i = 0; in_span && i < WAIT_MS / 10 && in_span(2, nullptr) != 2; i++)
        usleep(10000);
    return in_span ? library : nullptr;
}

int main(int argc, char **argv) {
    EXPECT(argc > 1 && is_followed());
    EXPECT(published() == NO_SPAN);
    for (int i = 0; i < 20; i++) {
        void *const library = load(argv[1]);
        EXPECT(library);
        {
            api::trace::Scope scope(make_span(1));
            EXPECT(in_span(2, nullptr) == 2 && published() == 1);
            EXPECT(in_span(2, in_own_span) == 3 && published() == 1);
        }
        EXPECT(published() == NO_SPAN);
        EXPECT(dlclose(library) == 0);
        api::trace::Scope scope(make_span(4));
        EXPECT(published() == 4);
    }
    std::puts("ok");
    return 0;
}
