/* Once its storage is followed, replaces functions of that storage's class by others, which call
 * the former ones, as another profiler would. Then loads a library with a copy of the API of its
 * own. Prints "ok" if the storage still works, and its spans are published. usage: replaces_behind
 * plugin.so attach-and-detach|all */
#include "published.h"

#include <sys/mman.h>

namespace context = api::context;
using Storage = context::RuntimeContextStorage;
using Token = api::nostd::unique_ptr<context::Token>;
typedef uint64_t in_span_function(uint64_t number, uint64_t (*inside)());

enum { GET_CURRENT, ATTACH, DETACH };

static context::Context (*next_current)(Storage *);
static Token (*next_attach)(Storage *, const context::Context &);
static bool (*next_detach)(Storage *, context::Token &);

static context::Context current(Storage *storage) {
    return next_current(storage);
}
static Token attach(Storage *storage, const context::Context &context) {
    return next_attach(storage, context);
}
static bool detach(Storage *storage, context::Token &token) {
    return next_detach(storage, token);
}

static void **table_of_storage() {
    const Storage *const storage = context::RuntimeContext::GetConstRuntimeContextStorage().get();
    return *reinterpret_cast<void **const *>(storage);
}

template <typename Function> static void replace(int slot, Function **next, Function *function) {
    void **const at = table_of_storage() + slot;
    void *const page = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(at) & -4096ul);
    *next = reinterpret_cast<Function *>(*at);
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE) != 0)
        _exit(9);
    *static_cast<void *volatile *>(at) = reinterpret_cast<void *>(function);
}

static bool has_current(const context::Context &wanted) {
    return context::RuntimeContext::GetCurrent() == wanted;
}

static bool loads(const char *path) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    auto *const in_span =
        library ? reinterpret_cast<in_span_function *>(dlsym(library, "in_span")) : nullptr;
    for (int i = 0; in_span && i < wait_ms() / 10 && in_span(2, nullptr) != 2; i++)
        usleep(10000);
    return in_span && in_span(2, nullptr) == 2;
}

int main(int argc, char **argv) {
    if (argc < 3 || !is_followed())
        return std::puts("not followed"), 1;
    replace(ATTACH, &next_attach, attach);
    replace(DETACH, &next_detach, detach);
    if (!std::strcmp(argv[2], "all"))
        replace(GET_CURRENT, &next_current, current);
    api::trace::Scope outer(make_span(1));
    const context::Context inside = context::RuntimeContext::GetCurrent();
    if (!loads(argv[1]))
        return std::puts("the library is not followed"), 1;
    if (!has_current(inside))
        return std::puts("the storage has another context"), 1;
    {
        api::trace::Scope inner(make_span(3));
        if (published() != 3 || has_current(inside))
            return std::puts("the inner span is not active"), 1;
    }
    std::puts(has_current(inside) && published() == 1 ? "ok" : "the outer span is not active");
    return 0;
}
