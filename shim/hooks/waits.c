#include "waits.h"

#include "arch_forward.h"
#include "capture/capture.h"
#include "capture/kernel/first_page.h"
#include "capture/symbols/next_symbol.h"
#include "otelprof.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* Indices in hooks_waits_next. */
enum {
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, name, parameters) PLACE_##name,
#include "hooked.def"
    CALLS
};

extern void (*hooks_waits_next[])(void);

/* The functions have no types here: the registers are passed on unchanged. */
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, name, parameters)                               \
    ARCH_DEFINE_FORWARD(first_##name, hooks_waits_resolve, hooks_waits_next, PLACE_##name)         \
    ARCH_DEFINE_WATCHED_FORWARD(name, capture, offsetof(struct capture, want_helper),              \
                                capture_offer_helper, hooks_waits_next, PLACE_##name)
#include "hooked.def"

/* Written with the same addresses by each thread that resolves it. */
IN_FIRST_PAGE void (*hooks_waits_next[])(void) = {
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, name, parameters) [PLACE_##name] = first_##name,
#include "hooked.def"
};

__attribute__((used)) void hooks_waits_resolve(void) {
    struct symbol symbols[CALLS] = {
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, symbol, parameters)                             \
    [PLACE_##symbol] = {.name = #symbol},
#include "hooked.def"
    };
    _Static_assert(sizeof hooks_waits_next == CALLS * sizeof symbols->address, "a place for each");
    const int saved = errno;
    next_symbols(symbols, CALLS);
    for (size_t i = 0; i < CALLS; i++)
        if (symbols[i].address)
            __atomic_store_n((void **)(void *)&hooks_waits_next[i], symbols[i].address,
                             __ATOMIC_RELAXED);
    errno = saved;
}
