/* Is an executable with libraries that are loaded later, each with a copy of the API: the span that
 * became active last counts, in whichever copy. An unloaded library leaves nothing behind. Prints
 * "ok", or what was found instead. Its argument is plugin.so. */
#include "published.h"

#include <sys/mman.h>
#include <thread>

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
    /* the profiler searches for the API as soon as the library is loaded */
    for (int i = 0; in_span && i < wait_ms() / 10 && in_span(2, nullptr) != 2; i++)
        usleep(10000);
    return in_span ? library : nullptr;
}

static int use(const char *path, void **library) {
    EXPECT((*library = load(path)));
    {
        api::trace::Scope scope(make_span(1));
        EXPECT(in_span(2, nullptr) == 2 && published() == 1);
        EXPECT(in_span(2, in_own_span) == 3 && published() == 1);
    }
    EXPECT(published() == NO_SPAN);
    return 0;
}

/* A thread that has used the library keeps it loaded. Mostly it gets another place each time. */
static int use_and_unload(const char *path) {
    void *library = nullptr;
    int failed = 0;
    std::thread user([&] { failed = use(path, &library); });
    user.join();
    const void *const place = reinterpret_cast<const void *>(in_span);
    EXPECT(failed == 0 && dlclose(library) == 0);
    Dl_info info;
    EXPECT(dladdr(place, &info) == 0);
    void *const page = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(place) & -4096ul);
    (void)mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* or nearby */
    return 0;
}

int main(int argc, char **argv) {
    EXPECT(argc > 1 && is_followed());
    EXPECT(published() == NO_SPAN);
    for (int i = 0; i < 20; i++) {
        if (use_and_unload(argv[1]))
            return 1;
        api::trace::Scope scope(make_span(4));
        EXPECT(published() == 4);
    }
    std::puts("ok");
    return 0;
}
