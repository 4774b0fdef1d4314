#include "next.h"
#include "kernel/first_page.h"
#include "next_symbol.h"

#include <stdatomic.h>
#include <string.h>

IN_FIRST_PAGE static struct {
    struct next_calls calls;
    /* true once `calls` is set; two threads may set `calls` at once, to the same values */
    _Atomic bool is_ready;
} next;

/* Resolves the calls in the order of struct next_calls. Several threads may do it at once, with the
 * same result. */
static void resolve_calls(void) {
    struct symbol symbols[] = {
#define IN_TABLE(result, call, parameters) {.name = #call},
#include "../../hooks/hooked.def"
    };
    enum { CALLS = sizeof symbols / sizeof *symbols };
    _Static_assert(sizeof next.calls == CALLS * sizeof symbols->address,
                   "a name for each, in order");
    next_symbols(symbols, CALLS);
    for (size_t i = 0; i < CALLS; i++)
        if (symbols[i].address)
            memcpy((char *)&next.calls + i * sizeof symbols[i].address, &symbols[i].address,
                   sizeof symbols[i].address);
}

const struct next_calls *next_calls(void) {
    /* the load and the store pair with each other: a thread that finds true finds the calls */
    if (!atomic_load_explicit(&next.is_ready, memory_order_acquire)) {
        resolve_calls();
        atomic_store_explicit(&next.is_ready, true, memory_order_release);
    }
    return &next.calls;
}

const struct next_calls *next_library_calls(void) {
    if (!next_calls()->pthread_create || !next_calls()->dlclose)
        resolve_calls();
    return &next.calls;
}
