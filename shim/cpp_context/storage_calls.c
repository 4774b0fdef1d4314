#include "storage_calls.h"

#include "active_span.h"
#include "thread_spans.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Declares the functions as the compiler calls them: the address of a result in memory comes first,
 * then the object (Itanium C++ ABI, 3.1.3; on x86-64 in the registers of C's first arguments). */
typedef void *get_current_function(void *context, void *self);
typedef void *attach_function(uintptr_t *token, void *self, const void *context);
typedef bool detach_function(void *self, void *token);

struct storage {
    get_current_function *get_current;
    attach_function *attach;
    detach_function *detach;
    struct api_build build;
    _Atomic bool is_unreleasable; /* contexts of the storage cannot be released */
};

static struct storage storages[MOST_STORAGES];

static void *attach(unsigned number, uintptr_t *token, void *self, const void *context) {
    struct storage *const storage = &storages[number];
    struct span_ids ids;
    void *const result = storage->attach(token, self, context);
    struct attached attached = {.token = *token, .storage = number};
    attached.list = context_active_span(context, &storage->build, &ids);
    if (attached.list == CONTEXT_IN_DOUBT)
        /* an identity that differs from that of every list */
        attached.list = *token | CONTEXT_IN_DOUBT;
    thread_spans_push(&attached, &ids);
    return result;
}

static __attribute__((noinline)) void ask(unsigned number, void *self) {
    struct storage *const storage = &storages[number];
    uintptr_t context[CONTEXT_BYTES / sizeof(uintptr_t)] = {0};
    struct span_ids ids = {.active = false};
    uintptr_t list = CONTEXT_IN_DOUBT;
    if (!atomic_load_explicit(&storage->is_unreleasable, memory_order_relaxed)) {
        storage->get_current(context, self);
        list = context_active_span(context, &storage->build, &ids);
        if (!context_release(context, &storage->build))
            atomic_store_explicit(&storage->is_unreleasable, true, memory_order_relaxed);
    }
    thread_spans_found(number, list, &ids);
}

static bool detach(unsigned number, void *self, void *token) {
    const bool detached = storages[number].detach(self, token);
    if (detached && !thread_spans_pop((uintptr_t)token, number))
        ask(number, self);
    return detached;
}

/* --- the functions of each storage --- */

#define EACH_STORAGE(DO)                                                                           \
    DO(0)                                                                                          \
    DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define DEFINE(number)                                                                             \
    static void *attach_##number(uintptr_t *token, void *self, const void *context) {              \
        return attach(number, token, self, context);                                               \
    }                                                                                              \
    static bool detach_##number(void *self, void *token) {                                         \
        return detach(number, self, token);                                                        \
    }
#define NAME_ATTACH(number) attach_##number,
#define NAME_DETACH(number) detach_##number,

EACH_STORAGE(DEFINE)

static attach_function *const attaches[] = {EACH_STORAGE(NAME_ATTACH)};
static detach_function *const detaches[] = {EACH_STORAGE(NAME_DETACH)};
_Static_assert(sizeof attaches / sizeof *attaches == MOST_STORAGES, "one for each");

uintptr_t storage_calls_attach(unsigned storage) {
    return (uintptr_t)attaches[storage];
}

uintptr_t storage_calls_detach(unsigned storage) {
    return (uintptr_t)detaches[storage];
}

void storage_calls_follow(unsigned storage, const uintptr_t *functions, unsigned abi) {
    struct storage *const followed = &storages[storage];
    followed->get_current = (get_current_function *)functions[STORAGE_GET_CURRENT];
    followed->attach = (attach_function *)functions[STORAGE_ATTACH];
    followed->detach = (detach_function *)functions[STORAGE_DETACH];
    followed->build.abi = abi;
    atomic_store_explicit(&followed->build.layout, 0, memory_order_relaxed);
    atomic_store_explicit(&followed->build.doubts, 0, memory_order_relaxed);
    atomic_store_explicit(&followed->is_unreleasable, false, memory_order_release);
}
