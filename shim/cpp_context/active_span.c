#include "active_span.h"

#include "known_classes.h"

#include <stddef.h>
#include <string.h>

enum {
    MOST_ENTRIES = 64,   /* at most so many entries of a context are read */
    SPAN_ALTERNATIVE = 5 /* context::ContextValue: a pointer to a span */
};

/* Has the layout of std::shared_ptr<T> in both C++ libraries. */
struct shared {
    uintptr_t object;
    uintptr_t owners;
};

/* Has the layout of nostd::shared_ptr<T>: the table of functions of its class, then the C++
 * library's pointer. */
struct wrapped {
    uintptr_t table;
    struct shared pointer;
    uintptr_t unused;
};

/* Has the layout of context::Context::DataList. The value's alternative is a word, or its first
 * byte. */
struct wrapped_entry {
    const char *key;
    struct wrapped next;
    size_t key_length;
    struct wrapped value;
    uint8_t alternative;
};

struct shared_entry {
    const char *key;
    struct shared next;
    size_t key_length;
    struct shared value;
    uint8_t alternative;
};

/* Has the layout of trace::SpanContext. */
struct span_context {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t flags;
    uint8_t is_remote;
    struct wrapped state; /* in an STL build a struct shared */
};
_Static_assert(offsetof(struct span_context, state) == 32, "as the compiler lays it out");

/* Has the layout of _Sp_counted_base, the reference counts of libstdc++'s shared_ptr. */
struct counted {
    const uintptr_t *table;
    int uses;
    int weak_uses;
};

/* indices of the functions in the class's table */
enum { COUNTED_DISPOSE = 2, COUNTED_DESTROY = 3 };

typedef void method(void *object);

static void call_virtual(uintptr_t table, unsigned slot, void *object) {
    method *const function = *(method *const *)(table + slot * sizeof(uintptr_t));
    function(object);
}

/* --- which layout --- */

enum layout { LAYOUT_UNKNOWN, LAYOUT_WRAPPED, LAYOUT_SHARED };

enum { MOST_DOUBTS = 64 };

static bool pointer_is_counted(const struct shared *pointer, unsigned abi) {
    return pointer->owners &&
           known_class_of(*(const uintptr_t *)pointer->owners, abi) == CLASS_COUNTED;
}

static bool pointer_is_list(const struct shared *pointer, unsigned abi) {
    return pointer->owners &&
           known_class_of(*(const uintptr_t *)pointer->owners, abi) == CLASS_COUNTED_LIST;
}

bool api_build_is_foreign(const struct api_build *build) {
    return atomic_load_explicit(&build->doubts, memory_order_relaxed) >= MOST_DOUBTS;
}

static bool is_wrapped(const struct wrapped *pointer, unsigned abi, enum known_class class) {
    return known_class_of(pointer->table, abi) == class;
}

/* Recognizes the layout of a context by the pointer to its first entry, of which a context
 * consists. An empty context fits a layout only if the pointer is wrapped. Another context that
 * fits none is counted as a doubt. */
static __attribute__((noinline)) enum layout learn_layout(const void *context,
                                                          struct api_build *build) {
    const struct shared *const shared = context;
    enum layout layout = LAYOUT_UNKNOWN;
    if (is_wrapped(context, build->abi, CLASS_CONTEXT_POINTER))
        layout = LAYOUT_WRAPPED;
    else if (pointer_is_list(shared, build->abi))
        layout = LAYOUT_SHARED;
    if (layout != LAYOUT_UNKNOWN)
        atomic_store_explicit(&build->layout, layout, memory_order_relaxed);
    else if (shared->object)
        atomic_fetch_add_explicit(&build->doubts, 1, memory_order_relaxed);
    return layout;
}

static enum layout layout_of(const void *context, struct api_build *build) {
    const enum layout known = atomic_load_explicit(&build->layout, memory_order_relaxed);
    if (known == LAYOUT_WRAPPED)
        return is_wrapped(context, build->abi, CLASS_CONTEXT_POINTER) ? known : LAYOUT_UNKNOWN;
    if (known == LAYOUT_SHARED)
        return pointer_is_list(context, build->abi) ? known : LAYOUT_UNKNOWN;
    return api_build_is_foreign(build) ? LAYOUT_UNKNOWN : learn_layout(context, build);
}

/* --- giving up ownership --- */

/* Releases a pointer as ~shared_ptr() in libstdc++ does. The decrements pair with those of the
 * other owners, which are the program's. */
static void release_shared(const struct shared *pointer) {
    struct counted *const owners = (struct counted *)pointer->owners;
    if (__atomic_fetch_sub(&owners->uses, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    call_virtual((uintptr_t)owners->table, COUNTED_DISPOSE, owners);
    if (__atomic_fetch_sub(&owners->weak_uses, 1, __ATOMIC_ACQ_REL) == 1)
        call_virtual((uintptr_t)owners->table, COUNTED_DESTROY, owners);
}

bool context_release(void *context, struct api_build *build) {
    const enum layout layout = layout_of(context, build);
    if (layout == LAYOUT_WRAPPED)
        /* calls the destructor, which is the first function of the class */
        call_virtual(((const struct wrapped *)context)->table, 0, context);
    else if (layout == LAYOUT_SHARED)
        release_shared(context);
    return layout != LAYOUT_UNKNOWN || !((const struct shared *)context)->owners;
}

/* Destroys the state of a span context. Returns false, without releasing the state's objects, if
 * the state's class is unknown. */
static bool release_state(struct wrapped *state, enum layout layout, unsigned abi) {
    const struct shared *const shared = (const void *)state;
    if (layout == LAYOUT_WRAPPED) {
        if (!is_wrapped(state, abi, CLASS_STATE_POINTER))
            return false;
        call_virtual(state->table, 0, state);
        return true;
    }
    if (!shared->owners)
        return true;
    if (!pointer_is_counted(shared, abi))
        return false;
    release_shared(shared);
    return true;
}

/* --- finding the span --- */

static bool is_span_key(const char *key, size_t length) {
    static const char name[] = "active_span";
    return length == sizeof name - 1 && memcmp(key, name, sizeof name - 1) == 0;
}

/* Returns the span's address, or 0. */
static uintptr_t span_in_wrapped(uintptr_t list, unsigned abi) {
    const struct wrapped_entry *entry = (const void *)list;
    for (int i = 0; entry && i < MOST_ENTRIES;
         i++, entry = (const void *)entry->next.pointer.object)
        if (is_span_key(entry->key, entry->key_length))
            return entry->alternative == SPAN_ALTERNATIVE &&
                           is_wrapped(&entry->value, abi, CLASS_SPAN_POINTER)
                       ? entry->value.pointer.object
                       : 0;
    return 0;
}

static uintptr_t span_in_shared(uintptr_t list, unsigned abi) {
    const struct shared_entry *entry = (const void *)list;
    for (int i = 0; entry && i < MOST_ENTRIES; i++, entry = (const void *)entry->next.object)
        if (is_span_key(entry->key, entry->key_length))
            return entry->alternative == SPAN_ALTERNATIVE && pointer_is_counted(&entry->value, abi)
                       ? entry->value.object
                       : 0;
    return 0;
}

static bool is_all_zero(const uint8_t *bytes, size_t size) {
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++)
        any |= bytes[i];
    return any == 0;
}

/* Declares Span::GetContext(). A function of C++ writes a result in memory where its first argument
 * points (Itanium C++ ABI, 3.1.3). */
typedef void *get_context(struct span_context *result, uintptr_t span);

static void ask_span(uintptr_t span, enum layout layout, unsigned abi, struct span_ids *ids) {
    const uintptr_t table = *(const uintptr_t *)span;
    struct span_context context; /* uninitialized, because the function writes all of it */
    if (!known_class_has_context(table, abi))
        return;
    ((get_context *const *)table)[span_context_slot(abi)](&context, span);
    memcpy(ids->trace_id, context.trace_id, sizeof ids->trace_id);
    memcpy(ids->span_id, context.span_id, sizeof ids->span_id);
    ids->flags = context.flags;
    ids->active = !is_all_zero(ids->trace_id, sizeof ids->trace_id) &&
                  !is_all_zero(ids->span_id, sizeof ids->span_id);
    if (!release_state(&context.state, layout, abi))
        known_class_refuse(table, abi);
}

uintptr_t context_active_span(const void *context, struct api_build *build, struct span_ids *ids) {
    const enum layout layout = layout_of(context, build);
    uintptr_t list = 0;
    uintptr_t span = 0;
    ids->active = false;
    if (layout == LAYOUT_WRAPPED) {
        list = ((const struct wrapped *)context)->pointer.object;
        span = span_in_wrapped(list, build->abi);
    } else if (layout == LAYOUT_SHARED) {
        list = ((const struct shared *)context)->object;
        span = span_in_shared(list, build->abi);
    } else if (((const struct shared *)context)->object) {
        list = CONTEXT_IN_DOUBT;
    }
    if (span)
        ask_span(span, layout, build->abi, ids);
    return list;
}
