/* Attaches nothing but empty contexts until the profiler follows its storage, and three hundred
 * more; then spans. Prints "ok" if each span is published, and none while an empty context is
 * attached. */
#include "published.h"

namespace context = api::context;

/* The profiler has replaced a function of the storage's class: the first pointer of an object. */
static void *const volatile *table_of_storage() {
    auto *const storage = context::RuntimeContext::GetConstRuntimeContextStorage().get();
    return *reinterpret_cast<void *const volatile *const volatile *>(
        reinterpret_cast<void *const volatile *>(storage));
}

static void attach_empty() {
    const context::Context empty;
    const auto token = context::RuntimeContext::Attach(empty);
}

static bool is_replaced(void *before) {
    enum { ATTACH = 1 };
    for (int i = 0; i < wait_ms() && table_of_storage()[ATTACH] == before; i++) {
        attach_empty();
        usleep(1000);
    }
    return table_of_storage()[ATTACH] != before;
}

static int fail(const char *what, uint64_t number) {
    std::printf("%s %llu: %llu is published\n", what, (unsigned long long)number,
                (unsigned long long)published());
    return 1;
}

int main() {
    enum { ATTACH = 1, EMPTY_CONTEXTS = 300, SPANS = 20 };
    void *const before = table_of_storage()[ATTACH];
    if (!is_replaced(before))
        return fail("not followed", 0);
    for (int i = 0; i < EMPTY_CONTEXTS; i++)
        attach_empty();
    for (uint64_t number = 1; number <= SPANS; number++) {
        api::trace::Scope scope(make_span(number));
        if (published() != number)
            return fail("span", number);
        const context::Context empty;
        const auto token = context::RuntimeContext::Attach(empty);
        if (published() != NO_SPAN)
            return fail("an empty context in span", number);
    }
    std::puts("ok");
    return 0;
}
