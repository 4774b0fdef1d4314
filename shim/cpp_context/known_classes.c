#include "known_classes.h"

#include "loaded_ranges.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum { KEPT = 256, KIND_BITS = 7, NAME_BYTES = 160, ABI_DIGIT = 18 };

/* Caches the classes of tables by their addresses. Each of the two queries has a cache for each
 * ABI. */
struct class_cache {
    _Atomic uintptr_t kept[KEPT];
};

static struct known_classes {
    struct class_cache by_name[ABI_COUNT];
    struct class_cache by_functions[ABI_COUNT];
} known_classes;

static _Atomic uintptr_t *class_cache_entry(struct class_cache *class_cache, uintptr_t table) {
    return &class_cache->kept[(table >> 3 ^ table >> 11) % KEPT];
}

/* Returns the cached class; 0 if it is not known. */
static enum known_class recall(struct class_cache *class_cache, uintptr_t table) {
    const uintptr_t kept =
        atomic_load_explicit(class_cache_entry(class_cache, table), memory_order_relaxed);
    return (kept & ~(uintptr_t)KIND_BITS) == table ? (enum known_class)(kept & KIND_BITS) : 0;
}

static uintptr_t class_word(uintptr_t address) {
    return *(const uintptr_t *)address;
}

/* Returns the name of the class of a table, or NULL. The word before the functions points to the
 * class, whose second word is its name (Itanium C++ ABI, 2.5.2 and 2.9.5). */
static const char *class_name_of(uintptr_t table, size_t *length) {
    if (!loaded_is_readable(table - sizeof(uintptr_t), 2 * sizeof(uintptr_t)))
        return NULL;
    const uintptr_t class = class_word(table - sizeof(uintptr_t));
    if (class % sizeof(uintptr_t) || !loaded_is_readable(class, 2 * sizeof(uintptr_t)))
        return NULL;
    const uintptr_t name = class_word(class + sizeof(uintptr_t));
    const size_t readable = loaded_range_at(name, NAME_BYTES, RANGE_READ);
    *length = strnlen((const char *)name, readable);
    return *length < readable || readable == NAME_BYTES ? (const char *)name : NULL;
}

static bool is_of_api(const char *name, size_t length, const char *expected, unsigned abi) {
    if (length != strlen(expected))
        return false;
    for (size_t i = 0; i < length; i++)
        if (name[i] != (i == ABI_DIGIT ? (char)('0' + abi) : expected[i]))
            return false;
    return true;
}

static enum known_class class_of_name(const char *name, size_t length, unsigned abi) {
    static const struct {
        enum known_class kind;
        const char *name;
    } of_api[] = {
        {CLASS_CONTEXT_POINTER,
         "N13opentelemetry2v15nostd10shared_ptrINS0_7context7Context8DataListEE18shared_ptr_"
         "wrapperE"},
        {CLASS_SPAN_POINTER,
         "N13opentelemetry2v15nostd10shared_ptrINS0_5trace4SpanEE18shared_ptr_wrapperE"},
        {CLASS_STATE_POINTER,
         "N13opentelemetry2v15nostd10shared_ptrINS0_5trace10TraceStateEE18shared_ptr_wrapperE"},
    };
    static const char *const counted[] = {"St15_Sp_counted_ptrI", "St19_Sp_counted_deleterI",
                                          "St23_Sp_counted_ptr_inplaceI"};
    static const char entry[] = "7context7Context8DataListE";
    for (size_t i = 0; i < sizeof of_api / sizeof *of_api; i++)
        if (is_of_api(name, length, of_api[i].name, abi))
            return of_api[i].kind;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (strncmp(name, counted[i], strlen(counted[i])) == 0)
            return memmem(name, length, entry, sizeof entry - 1) ? CLASS_COUNTED_LIST
                                                                 : CLASS_COUNTED;
    return CLASS_OTHER;
}

static enum known_class class_named(uintptr_t table, unsigned abi) {
    size_t length = 0;
    const char *const name = class_name_of(table, &length);
    return name ? class_of_name(name, length, abi) : CLASS_OTHER;
}

static enum known_class class_with_context(uintptr_t table, unsigned abi) {
    const unsigned count = span_context_slot(abi) + 2;
    if (!loaded_is_readable(table, count * sizeof(uintptr_t)))
        return CLASS_OTHER;
    for (unsigned i = 0; i < count; i++)
        if (!loaded_is_code(class_word(table + i * sizeof(uintptr_t))))
            return CLASS_OTHER;
    return CLASS_WITH_CONTEXT;
}

/* Queries the class, and caches the result unless objects were loaded or unloaded meanwhile. */
static __attribute__((noinline)) enum known_class
classify_and_cache(struct class_cache *class_cache, uintptr_t table, unsigned abi,
                   enum known_class (*classify)(uintptr_t table, unsigned abi)) {
    const uint32_t version = loaded_ranges_version();
    const enum known_class kind = classify(table, abi);
    if (version % 2 == 0 && loaded_ranges_version() == version)
        atomic_store_explicit(class_cache_entry(class_cache, table), table | kind,
                              memory_order_relaxed);
    return kind;
}

static enum known_class cached_class(struct class_cache *class_cache, uintptr_t table, unsigned abi,
                                     enum known_class (*classify)(uintptr_t table, unsigned abi)) {
    if (table % sizeof(uintptr_t))
        return CLASS_OTHER;
    const enum known_class kind = recall(class_cache, table);
    return kind ? kind : classify_and_cache(class_cache, table, abi, classify);
}

enum known_class known_class_of(uintptr_t table, unsigned abi) {
    return cached_class(&known_classes.by_name[abi - 1], table, abi, class_named);
}

bool known_class_has_context(uintptr_t table, unsigned abi) {
    return cached_class(&known_classes.by_functions[abi - 1], table, abi, class_with_context) ==
           CLASS_WITH_CONTEXT;
}

void known_class_refuse(uintptr_t table, unsigned abi) {
    atomic_store_explicit(class_cache_entry(&known_classes.by_functions[abi - 1], table),
                          table | CLASS_OTHER, memory_order_relaxed);
}

static void class_cache_clear(struct class_cache *class_cache) {
    for (size_t i = 0; i < KEPT; i++)
        atomic_store_explicit(&class_cache->kept[i], 0, memory_order_relaxed);
}

void known_classes_forget(void) {
    for (unsigned i = 0; i < ABI_COUNT; i++) {
        class_cache_clear(&known_classes.by_name[i]);
        class_cache_clear(&known_classes.by_functions[i]);
    }
}
