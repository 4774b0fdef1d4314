#include "storage_calls.h"

#include "active_span.h"
#include "arch_observed_call.h"
#include "known_classes.h"
#include "safe_read.h"
#include "thread_spans.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Declares GetCurrent() as the compiler calls it: the address of a result in memory comes first,
 * then the object (Itanium C++ ABI, 3.1.3; on x86-64 in the registers of C's first arguments). So
 * the arguments of Attach() are {result, object, context}, those of Detach() {object, token}. */
typedef void *get_current_function(void *context, void *self);

enum {
    MOST_MISSES = 64,   /* a storage is left alone after so many calls that are not the API's */
    PROOFS = 4,         /* so many calls of the API show that all are */
    MOST_CHECKS = 1000, /* so many calls of GetCurrent() are observed at most */
};

struct storage {
    get_current_function *get_current;
    uintptr_t attach;
    uintptr_t detach;
    uintptr_t table;
    struct api_build build;
    _Atomic uintptr_t self;    /* an object of the storage's class that was seen */
    _Atomic uint32_t misses;   /* calls so far that were none of the API's */
    _Atomic uint32_t attaches; /* calls so far that were surely of the API, up to PROOFS */
    _Atomic uint32_t detaches;
    _Atomic bool returns_contexts; /* GetCurrent() was seen to return one, as the API's does */
    _Atomic uint32_t checks;       /* calls of GetCurrent() observed so far */
    _Atomic bool is_unreleasable;  /* contexts of the storage cannot be released */
};

static struct storage storages[MOST_STORAGES];

/* --- is it a call of the API? --- */

/* Copies memory that may be unmapped: the kernel checks each page before that, by a system call
 * that every seccomp filter allows. */
static bool copy_words(uintptr_t *to, uintptr_t from, size_t count) {
    return from % sizeof *to == 0 && safe_read_here(from, to, count * sizeof *to, true);
}

static bool is_self(struct storage *storage, uintptr_t object) {
    uintptr_t table;
    if (object == atomic_load_explicit(&storage->self, memory_order_relaxed))
        return object != 0;
    if (!copy_words(&table, object, 1) || table != storage->table)
        return false;
    atomic_store_explicit(&storage->self, object, memory_order_relaxed);
    return true;
}

/* Lists how surely an object is a context. An empty context of one layout consists of two words of
 * 0, as other objects may, too: so it shows neither that the call is the API's, nor that it is
 * not. */
enum context_kind { NO_CONTEXT, EMPTY_CONTEXT, SURE_CONTEXT };

static enum context_kind context_kind(const struct storage *storage, uintptr_t context) {
    uintptr_t words[2];
    uintptr_t table;
    if (!copy_words(words, context, 2))
        return NO_CONTEXT;
    if (!words[0] && !words[1])
        return EMPTY_CONTEXT;
    const bool is_sure = known_class_of(words[0], storage->build.abi) == CLASS_CONTEXT_POINTER ||
                         (words[0] && words[1] && copy_words(&table, words[1], 1) &&
                          known_class_of(table, storage->build.abi) == CLASS_COUNTED_LIST);
    return is_sure ? SURE_CONTEXT : NO_CONTEXT;
}

/* Returns whether the object is a context of a known layout, whose first words show it. */
static bool is_context(const struct storage *storage, uintptr_t context) {
    return context_kind(storage, context) == SURE_CONTEXT;
}

static bool is_refused(struct storage *storage) {
    return atomic_load_explicit(&storage->misses, memory_order_relaxed) >= MOST_MISSES;
}

static bool is_proven(const _Atomic uint32_t *proofs) {
    return atomic_load_explicit(proofs, memory_order_relaxed) >= PROOFS;
}

static void count_up(_Atomic uint32_t *proofs, uint32_t most) {
    if (atomic_load_explicit(proofs, memory_order_relaxed) < most)
        atomic_fetch_add_explicit(proofs, 1, memory_order_relaxed);
}

bool storage_calls_are_refused(unsigned number) {
    return is_refused(&storages[number]);
}

bool storage_calls_are_bypassed(unsigned number, const uintptr_t *functions) {
    const struct storage *const storage = &storages[number];
    return functions[STORAGE_GET_CURRENT] == (uintptr_t)storage->get_current &&
           functions[STORAGE_ATTACH] == storage->attach &&
           functions[STORAGE_DETACH] == storage->detach;
}

/* --- the calls --- */

/* Decides by a few loads, without vector registers. Returns the function to call; 0: the storage is
 * not known well enough, and the caller must check the arguments. */
static inline uintptr_t decide_quickly(struct observed_call *call, const _Atomic uint32_t *proofs,
                                       uintptr_t object, uintptr_t function) {
    struct storage *const storage = &storages[call->number];
    if (is_refused(storage))
        return function;
    if (!is_proven(proofs) || object != atomic_load_explicit(&storage->self, memory_order_relaxed))
        return 0;
    call->is_observed = true;
    return function;
}

__attribute__((used)) static uintptr_t attach_quick(struct observed_call *call) {
    struct storage *const storage = &storages[call->number];
    if (call->arguments[0] == call->arguments[1])
        return 0;
    return decide_quickly(call, &storage->attaches, call->arguments[1], storage->attach);
}

__attribute__((used)) static uintptr_t detach_quick(struct observed_call *call) {
    struct storage *const storage = &storages[call->number];
    return decide_quickly(call, &storage->detaches, call->arguments[0], storage->detach);
}

/* Until the storage is proven, an empty context is observed only if there is a proof already: then
 * it may have replaced a span. */
__attribute__((used)) static uintptr_t attach_before(struct observed_call *call) {
    struct storage *const storage = &storages[call->number];
    const uintptr_t *const arguments = call->arguments;
    const bool is_proven_api = is_proven(&storage->attaches);
    enum context_kind kind = NO_CONTEXT;
    if (arguments[0] != arguments[1] && is_self(storage, arguments[1]))
        kind = is_proven_api ? SURE_CONTEXT : context_kind(storage, arguments[2]);
    call->is_observed = kind == SURE_CONTEXT ||
                        (kind == EMPTY_CONTEXT &&
                         atomic_load_explicit(&storage->attaches, memory_order_relaxed) > 0);
    if (kind == NO_CONTEXT && !is_proven_api)
        count_up(&storage->misses, MOST_MISSES);
    return storage->attach;
}

/* A function that returns its result in memory returns that memory's address, too. */
__attribute__((used)) static void attach_after(struct observed_call *call) {
    const unsigned number = (unsigned)call->number;
    struct storage *const storage = &storages[number];
    const uintptr_t place = call->arguments[0];
    const uintptr_t context = call->arguments[2];
    struct span_ids ids;
    uintptr_t token = 0;
    if (observed_result(call) != place || place % sizeof token ||
        (!is_proven(&storage->attaches) && !copy_words(&token, place, 1))) {
        count_up(&storage->misses, MOST_MISSES);
        return;
    }
    if (!is_proven(&storage->attaches) && is_context(storage, context))
        count_up(&storage->attaches, PROOFS);
    token = *(const uintptr_t *)place;
    struct attached attached = {.token = token, .storage = number};
    attached.list = context_active_span((const void *)context, &storage->build, &ids);
    if (attached.list == CONTEXT_IN_DOUBT)
        attached.list = token | CONTEXT_IN_DOUBT; /* the identity of a list that equals no other */
    thread_spans_push(&attached, &ids);
}

static __attribute__((noinline)) void ask(unsigned number, void *self) {
    struct storage *const storage = &storages[number];
    uintptr_t context[CONTEXT_BYTES / sizeof(uintptr_t)] = {0};
    struct span_ids ids = {.active = false};
    uintptr_t list = CONTEXT_IN_DOUBT;
    if (atomic_load_explicit(&storage->returns_contexts, memory_order_relaxed) &&
        !atomic_load_explicit(&storage->is_unreleasable, memory_order_relaxed)) {
        storage->get_current(context, self);
        list = context_active_span(context, &storage->build, &ids);
        if (!context_release(context, &storage->build))
            atomic_store_explicit(&storage->is_unreleasable, true, memory_order_relaxed);
    }
    thread_spans_found(number, list, &ids);
}

/* Returns true if the token shows that the call is the API's, or if that needs no proof any more.
 * Attach() has returned such a token to this thread, or the token begins with its context. */
static bool storage_is_token(struct storage *storage, unsigned number, uintptr_t token) {
    return is_proven(&storage->detaches) || thread_spans_has(token, number) ||
           is_context(storage, token);
}

__attribute__((used)) static uintptr_t detach_before(struct observed_call *call) {
    const unsigned number = (unsigned)call->number;
    struct storage *const storage = &storages[number];
    const uintptr_t *const arguments = call->arguments;
    call->is_observed =
        is_self(storage, arguments[0]) && storage_is_token(storage, number, arguments[1]);
    return storage->detach;
}

__attribute__((used)) static void detach_after(struct observed_call *call) {
    const unsigned number = (unsigned)call->number;
    const uint8_t detached = (uint8_t)observed_result(call); /* a bool */
    if (detached != true)
        return;
    count_up(&storages[number].detaches, PROOFS);
    if (!thread_spans_pop(call->arguments[1], number))
        ask(number, (void *)call->arguments[0]);
}

/* GetCurrent() is observed until it has returned a context, because the profiler calls it, too. */
__attribute__((used)) static uintptr_t current_quick(struct observed_call *call) {
    struct storage *const storage = &storages[call->number];
    const bool is_over =
        is_refused(storage) ||
        atomic_load_explicit(&storage->returns_contexts, memory_order_relaxed) ||
        atomic_load_explicit(&storage->checks, memory_order_relaxed) >= MOST_CHECKS;
    return is_over ? (uintptr_t)storage->get_current : 0;
}

__attribute__((used)) static uintptr_t current_before(struct observed_call *call) {
    struct storage *const storage = &storages[call->number];
    const uintptr_t *const arguments = call->arguments;
    call->is_observed = arguments[0] != arguments[1] && is_self(storage, arguments[1]);
    count_up(&storage->checks, MOST_CHECKS);
    return (uintptr_t)storage->get_current;
}

__attribute__((used)) static void current_after(struct observed_call *call) {
    struct storage *const storage = &storages[call->number];
    const uintptr_t place = call->arguments[0];
    if (observed_result(call) == place && is_context(storage, place))
        atomic_store_explicit(&storage->returns_contexts, true, memory_order_relaxed);
}

/* Copies eight words of the stack. A word that cannot be read is no argument, and becomes 0. */
__attribute__((used)) static void copy_arguments(uintptr_t to[8], uintptr_t from) {
    for (int i = 0; i < 8; i++)
        if (!copy_words(&to[i], from + (uintptr_t)i * sizeof *to, 1))
            to[i] = 0;
}

ARCH_DEFINE_OBSERVER(observe_current, current_quick, current_before, current_after, copy_arguments)
ARCH_DEFINE_OBSERVER(observe_attach, attach_quick, attach_before, attach_after, copy_arguments)
ARCH_DEFINE_OBSERVER(observe_detach, detach_quick, detach_before, detach_after, copy_arguments)

/* --- the functions of each storage --- */

#define EACH_STORAGE(DO)                                                                           \
    DO(0)                                                                                          \
    DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define DEFINE(number)                                                                             \
    ARCH_DEFINE_OBSERVED(current_##number, observe_current, number)                                \
    ARCH_DEFINE_OBSERVED(attach_##number, observe_attach, number)                                  \
    ARCH_DEFINE_OBSERVED(detach_##number, observe_detach, number)
#define NAME_CURRENT(number) current_##number,
#define NAME_ATTACH(number)  attach_##number,
#define NAME_DETACH(number)  detach_##number,

EACH_STORAGE(DEFINE)

typedef void observed_function(void);

static observed_function *const currents[] = {EACH_STORAGE(NAME_CURRENT)};
static observed_function *const attaches[] = {EACH_STORAGE(NAME_ATTACH)};
static observed_function *const detaches[] = {EACH_STORAGE(NAME_DETACH)};
_Static_assert(sizeof attaches / sizeof *attaches == MOST_STORAGES, "one for each");

uintptr_t storage_calls_get_current(unsigned storage) {
    return (uintptr_t)currents[storage];
}

uintptr_t storage_calls_attach(unsigned storage) {
    return (uintptr_t)attaches[storage];
}

uintptr_t storage_calls_detach(unsigned storage) {
    return (uintptr_t)detaches[storage];
}

void storage_calls_follow(unsigned storage, const uintptr_t *functions, unsigned abi) {
    struct storage *const followed = &storages[storage];
    followed->get_current = (get_current_function *)functions[STORAGE_GET_CURRENT];
    followed->attach = functions[STORAGE_ATTACH];
    followed->detach = functions[STORAGE_DETACH];
    followed->table = (uintptr_t)functions;
    atomic_store_explicit(&followed->self, 0, memory_order_relaxed);
    atomic_store_explicit(&followed->misses, 0, memory_order_relaxed);
    atomic_store_explicit(&followed->attaches, 0, memory_order_relaxed);
    atomic_store_explicit(&followed->detaches, 0, memory_order_relaxed);
    atomic_store_explicit(&followed->checks, 0, memory_order_relaxed);
    atomic_store_explicit(&followed->returns_contexts, false, memory_order_relaxed);
    followed->build.abi = abi;
    atomic_store_explicit(&followed->build.layout, 0, memory_order_relaxed);
    atomic_store_explicit(&followed->build.doubts, 0, memory_order_relaxed);
    /* storage_table_replace() publishes all of this to the threads that call the hooks */
    atomic_store_explicit(&followed->is_unreleasable, false, memory_order_relaxed);
}
