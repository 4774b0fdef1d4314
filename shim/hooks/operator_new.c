/* Hooks operator new and delete, for allocators that define them, and C23's free_sized.
 *
 * libstdc++'s operators call malloc and free, which are hooked already: then these hooks only
 * forward the call. jemalloc, tcmalloc and mimalloc implement operator new without a call of
 * malloc: then the hooks count the allocation. They count if the next operator new is in the object
 * of the next malloc. If these exports are not needed, or there is no function to forward to, they
 * are removed after start-up (profiler_exports.h), so that a library loaded later finds the
 * definition that it would have found without us. */
#include "allocation.h"
#include "capture/symbols/next_symbol.h"
#include "entry.h"
#include "hooks.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* --- fallbacks without a C++ library: never called by a correct program --- */

static void *or_throw(void *object) {
    void (*throw_bad_alloc)(void);
    void *const found = object ? NULL : first_symbol("_ZSt17__throw_bad_allocv");
    memcpy(&throw_bad_alloc, &found, sizeof found);
    if (object)
        return object;
    if (throw_bad_alloc)
        throw_bad_alloc();
    abort();
}

static void *nothrow_without_cxx(size_t size, const void *tag) {
    (void)tag;
    return malloc(size ? size : 1);
}

static void *plain_without_cxx(size_t size) {
    return or_throw(nothrow_without_cxx(size, NULL));
}

static void *aligned_nothrow_without_cxx(size_t size, size_t alignment, const void *tag) {
    (void)tag;
    return memalign(alignment, size ? size : 1);
}

static void *aligned_without_cxx(size_t size, size_t alignment) {
    return or_throw(aligned_nothrow_without_cxx(size, alignment, NULL));
}

/* --- the next functions --- */

#define NEW(function, symbol, parameters, arguments, fallback)                                     \
    static void *first_##function parameters;
#define DELETE(function, version, symbol, parameters, arguments)                                   \
    static void first_##function parameters;
#include "operator_new.def"
#undef NEW
#undef DELETE

/* Holds the next functions, which the first call of a hook resolves. */
static struct {
#define NEW(function, symbol, parameters, arguments, fallback)                                     \
    struct {                                                                                       \
        void *(*call)parameters;                                                                   \
        bool counted;                                                                              \
    } function;
#define DELETE(function, version, symbol, parameters, arguments)                                   \
    struct {                                                                                       \
        void(*call) parameters;                                                                    \
        bool counted;                                                                              \
    } function;
#include "operator_new.def"
#undef NEW
#undef DELETE
} next_operators = {
#define NEW(function, ...)    .function = {first_##function, false},
#define DELETE(function, ...) .function = {first_##function, false},
#include "operator_new.def"
#undef NEW
#undef DELETE
};

enum {
#define NEW(function, ...)    NEW_##function,
#define DELETE(function, ...) NEW_##function,
#include "operator_new.def"
#undef NEW
#undef DELETE
    FUNCTIONS,
    CXX_FUNCTIONS = NEW_free_of_size /* the functions of C23 follow */
};

static const char *const names[FUNCTIONS] = {
#define NEW(function, symbol, ...)             #symbol,
#define DELETE(function, version, symbol, ...) #symbol,
#include "operator_new.def"
#undef NEW
#undef DELETE
};

/* Resolves the operators. Searches plain operator new first, because most programs have no C++, and
 * an object that defines any of the operators defines plain operator new. */
static void operators_resolve(struct symbol *symbols) {
    for (int i = 0; i < FUNCTIONS; i++)
        symbols[i] = (struct symbol){.name = names[i]};
    next_symbols(&symbols[NEW_new_one], 1);
    next_symbols(&symbols[CXX_FUNCTIONS], FUNCTIONS - CXX_FUNCTIONS);
    if (symbols[NEW_new_one].address)
        next_symbols(symbols, CXX_FUNCTIONS);
}

/* Stores the next function, or `fallback` if there is none; sets `*counted` if the next function is
 * in the object of the next malloc. */
static void operator_store(const struct symbol *found, const struct symbol *allocator,
                           const void *fallback, void *call, bool *counted) {
    const void *const source = found->address ? &found->address : fallback;
    *counted = found->address && found->object == allocator->object;
    memcpy(call, source, sizeof found->address);
}

ARCH_ANY_STACK void hooks_new_finish_init(void) {
    struct symbol allocator = {.name = "malloc"};
    struct symbol found[FUNCTIONS];
    next_symbols(&allocator, 1);
    operators_resolve(found);
#define NEW(function, symbol, parameters, arguments, fallback)                                     \
    void *(*const without_##function)parameters = fallback;                                        \
    operator_store(&found[NEW_##function], &allocator, &without_##function,                        \
                   &next_operators.function.call, &next_operators.function.counted);
/* further arguments are ignored */
#define DELETE(function, version, symbol, parameters, arguments)                                   \
    void (*const without_##function)(void *) = free;                                               \
    operator_store(&found[NEW_##function], &allocator, &without_##function,                        \
                   &next_operators.function.call, &next_operators.function.counted);
#include "operator_new.def"
#undef NEW
#undef DELETE
}

size_t hooks_new_unneeded(struct symbol *unneeded) {
    const bool counted[FUNCTIONS] = {
#define NEW(function, ...)    next_operators.function.counted,
#define DELETE(function, ...) next_operators.function.counted,
#include "operator_new.def"
#undef NEW
#undef DELETE
    };
    size_t count = 0;
    _Static_assert((int)HOOKS_NEW_FUNCTIONS == (int)FUNCTIONS, "room for each");
    for (int i = 0; i < FUNCTIONS; i++)
        if (!counted[i])
            unneeded[count++] = (struct symbol){.name = names[i]};
    return count;
}

/* --- the hooks --- */

/* Holds the countdown before an allocator's operator is called. If it has moved afterwards, the
 * operator has called malloc or memalign, whose hook has counted the allocation. An exception
 * thrown in between leaves no state to restore. */
struct countdown {
    uint64_t left;
    uint32_t begun;
};

static inline struct countdown countdown_now(void) {
    return (struct countdown){profiler_tls.alloc_left, profiler_tls.countdowns};
}

static inline bool countdown_moved(struct countdown before) {
    return profiler_tls.alloc_left != before.left || profiler_tls.countdowns != before.begun;
}

#define NEW(function, symbol, parameters, arguments, fallback)                                     \
    static void *first_##function parameters {                                                     \
        hooks_new_finish_init();                                                                   \
        return next_operators.function.call arguments;                                             \
    }                                                                                              \
    FAST_HOOK void *function parameters __asm__(#symbol);                                          \
    void *function parameters {                                                                    \
        if (!next_operators.function.counted)                                                      \
            return next_operators.function.call arguments;                                         \
        const struct countdown before = countdown_now();                                           \
        void *const object = next_operators.function.call arguments;                               \
        if (object && !countdown_moved(before))                                                    \
            return allocation_made(object, size, allocation_is_sampled(size));                     \
        return object;                                                                             \
    }
#define DELETE(function, version, symbol, parameters, arguments)                                   \
    static void first_##function parameters {                                                      \
        hooks_new_finish_init();                                                                   \
        next_operators.function.call arguments;                                                    \
    }                                                                                              \
    FAST_HOOK void function parameters __asm__(#symbol);                                           \
    void function parameters {                                                                     \
        if (next_operators.function.counted)                                                       \
            allocation_ends(object);                                                               \
        next_operators.function.call arguments;                                                    \
    }
#include "operator_new.def"
#undef NEW
#undef DELETE
