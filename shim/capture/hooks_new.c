/* operator new and delete, for allocators that bring their own, and C23's free_sized.
 *
 * libstdc++'s operators call malloc and free, which are hooked already: then these functions only
 * pass the call on. jemalloc, tcmalloc and mimalloc answer operator new themselves, without a call
 * of malloc: then it is counted here. Which it is shows in the object that the next function lives
 * in: the one of the next malloc or another. Where they are not needed, or where there is nothing
 * to pass calls on to, these exports are withdrawn after start-up (own_exports.h), so that a
 * library loaded later finds what it would have found without us.
 */
#include "hooks_new.h"
#include "allocation.h"
#include "loaded_object.h"
#include "next.h"
#include "next_symbol.h"
#include "otelprof.h"
#include "own_exports.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* --- what nobody should ever call: there is no C++ library --- */

static void *or_throw(void *object) {
    void (*throw_bad_alloc)(void);
    void *const found =
        object || !libc_is_complete() ? NULL : dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv");
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

/* --- the functions behind ours --- */

/* Before they are known, the first call finds them. */
#define NEW(function, symbol, parameters, arguments, fallback)                                     \
    static void *first_##function parameters;                                                      \
    static struct {                                                                                \
        void *(*call)parameters;                                                                   \
        bool counted;                                                                              \
    } next_##function = {first_##function, false};
#define DELETE(function, symbol, parameters, arguments)                                            \
    static void first_##function parameters;                                                       \
    static struct {                                                                                \
        void(*call) parameters;                                                                    \
        bool counted;                                                                              \
    } next_##function = {first_##function, false};
#include "operator_new.def"
#undef NEW
#undef DELETE

/* A look-up that fails is dear, and most programs have no C++: who has one of its operators behind
 * us has this one. C23's functions are C's. */
static bool can_be_there(const char *symbol) {
    static const char any_new[] = "_Znwm";
    static bool known; /* both written at start or, with the same values, by a first call */
    static bool has_cxx;
    if (!known)
        has_cxx = next_symbol(any_new) != NULL;
    known = true;
    return has_cxx || symbol[0] != '_';
}

/* Whether the function is there; `*counted`: it is in `allocator`, the object of the next malloc.
 */
static bool look_up(const char *symbol, const void *allocator, void *call, bool *counted) {
    void *const found = can_be_there(symbol) ? next_symbol(symbol) : NULL;
    if (!found)
        return false;
    const void *const object = loaded_object_base(found);
    *counted = object && object == allocator;
    memcpy(call, &found, sizeof found);
    return true;
}

static void resolve(void) {
    const void *const allocator = next_malloc_base();
#define NEW(function, symbol, parameters, arguments, fallback)                                     \
    if (!look_up(symbol, allocator, &next_##function.call, &next_##function.counted))              \
        next_##function.call = fallback;
#define DELETE(function, symbol, parameters, arguments)                                            \
    if (!look_up(symbol, allocator, &next_##function.call, &next_##function.counted)) {            \
        void (*const plain)(void *) = free;                                                        \
        memcpy(&next_##function.call, &plain, sizeof plain); /* further arguments are ignored */   \
    }
#include "operator_new.def"
#undef NEW
#undef DELETE
}

void hooks_new_settle(void) {
    enum {
#define NEW(function, ...)    NEW_##function,
#define DELETE(function, ...) DELETE_##function,
#include "operator_new.def"
#undef NEW
#undef DELETE
        OPERATORS
    };
    const char *unneeded[OPERATORS];
    size_t count = 0;
    resolve();
#define NEW(function, symbol, parameters, arguments, fallback)                                     \
    if (!next_##function.counted)                                                                  \
        unneeded[count++] = symbol;
#define DELETE(function, symbol, parameters, arguments)                                            \
    if (!next_##function.counted)                                                                  \
        unneeded[count++] = symbol;
#include "operator_new.def"
#undef NEW
#undef DELETE
    (void)own_exports_withdraw(unneeded, count);
}

/* --- the functions --- */

/* Some of the allocators' operators come by malloc or memalign all the same: then that call has
 * counted. It shows afterwards, so that an exception thrown in between leaves nothing undone. */
struct countdown {
    uint64_t left;
    uint32_t samples;
};

static inline struct countdown countdown_now(void) {
    return (struct countdown){own_tls.alloc_left, own_tls.alloc_samples};
}

static inline bool countdown_moved(struct countdown before) {
    return own_tls.alloc_left != before.left || own_tls.alloc_samples != before.samples;
}

#define NEW(function, symbol, parameters, arguments, fallback)                                     \
    static void *first_##function parameters {                                                     \
        resolve();                                                                                 \
        return next_##function.call arguments;                                                     \
    }                                                                                              \
    OTELPROF_EXPORT void *function parameters __asm__(symbol);                                     \
    void *function parameters {                                                                    \
        if (!next_##function.counted)                                                              \
            return next_##function.call arguments;                                                 \
        const struct countdown before = countdown_now();                                           \
        void *const object = next_##function.call arguments;                                       \
        if (object && !countdown_moved(before))                                                    \
            return allocation_made(object, size, allocation_is_sampled(size));                     \
        return object;                                                                             \
    }
#define DELETE(function, symbol, parameters, arguments)                                            \
    static void first_##function parameters {                                                      \
        resolve();                                                                                 \
        next_##function.call arguments;                                                            \
    }                                                                                              \
    OTELPROF_EXPORT void function parameters __asm__(symbol);                                      \
    void function parameters {                                                                     \
        if (next_##function.counted)                                                               \
            allocation_ends(object);                                                               \
        next_##function.call arguments;                                                            \
    }
#include "operator_new.def"
#undef NEW
#undef DELETE
