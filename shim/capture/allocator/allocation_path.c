#include "allocation_path.h"

#include "arch_entry.h"
#include "kernel/stepped_memory.h"
#include "symbols/definition.h"
#include "symbols/next_symbol.h"

#include <errno.h>
#include <string.h>

static void *boot_malloc(size_t size);
static void boot_free(void *object);
static void *boot_calloc(size_t count, size_t size);
static void *boot_realloc(void *object, size_t size);
static void *boot_memalign(size_t alignment, size_t size);
static int boot_posix_memalign(void **object, size_t alignment, size_t size);

/* Begins with the boot functions: the first call of any of them resolves the next allocator. */
struct allocation_path allocation_path = {
    .filter = ADDRESS_FILTER_CLOSED(allocation_path.filter),
    .next = {.malloc = boot_malloc,
             .free = boot_free,
             .calloc = boot_calloc,
             .realloc = boot_realloc,
             .memalign = boot_memalign,
             .aligned_alloc = boot_memalign,
             .posix_memalign = boot_posix_memalign},
};

static struct stepped_memory filter_memory;

/* --- before the next allocator is known --- */

enum {
#define IN_ALLOCATOR(result, function, parameters) NEXT_##function,
#include "../../hooks/hooked.def"
    FUNCTIONS
};

static void set_next(void *function, const struct symbol *symbol) {
    if (symbol->address)
        memcpy(function, &symbol->address, sizeof symbol->address);
}

/* Finds the next allocator, even if the program's own malloc precedes the profiler's: all functions
 * then forward to the functions that a process without the profiler would use. Several threads may
 * resolve it at once, with the same result. Returns false if there is no next allocator. */
ARCH_ANY_STACK static bool resolve_next(void) {
    struct symbol symbols[FUNCTIONS] = {
#define IN_ALLOCATOR(result, function, parameters) [NEXT_##function] = {.name = #function},
#include "../../hooks/hooked.def"
    };
    struct next_allocator *const next = &allocation_path.next;
    next_symbols(symbols, FUNCTIONS);
    for (int i = NEXT_malloc; i <= NEXT_realloc; i++)
        if (!symbols[i].address)
            return false;
#define IN_ALLOCATOR(result, function, parameters)                                                 \
    if (NEXT_##function != NEXT_malloc)                                                            \
        set_next(&next->function, &symbols[NEXT_##function]);
#include "../../hooks/hooked.def"
    /* stored last: a thread that sees this pointer sees all others, too */
    set_next(&next->malloc, &symbols[NEXT_malloc]);
    return true;
}

static void *boot_malloc(size_t size) {
    return resolve_next() ? allocation_path.next.malloc(size) : NULL;
}

static void boot_free(void *object) {
    if (resolve_next())
        allocation_path.next.free(object);
}

static void *boot_calloc(size_t count, size_t size) {
    return resolve_next() ? allocation_path.next.calloc(count, size) : NULL;
}

static void *boot_realloc(void *object, size_t size) {
    return resolve_next() ? allocation_path.next.realloc(object, size) : NULL;
}

static void *boot_memalign(size_t alignment, size_t size) {
    return resolve_next() && allocation_path.next.memalign != boot_memalign
               ? allocation_path.next.memalign(alignment, size)
               : NULL;
}

static int boot_posix_memalign(void **object, size_t alignment, size_t size) {
    return resolve_next() && allocation_path.next.posix_memalign != boot_posix_memalign
               ? allocation_path.next.posix_memalign(object, alignment, size)
               : ENOMEM;
}

void allocation_path_resolve(void) {
    if (allocation_path.next.malloc == boot_malloc)
        (void)resolve_next();
}

bool allocation_path_is_used(void) {
    allocation_path_resolve();
    return !definition_comes_before_ours("malloc");
}

bool allocation_path_has_filter(void) {
    if (address_filter_is_open(&allocation_path.filter))
        return true;
    _Atomic uint8_t *const counters = stepped_memory_map(&filter_memory, ADDRESS_FILTER_ENTRIES);
    if (!counters)
        return false;
    address_filter_open(&allocation_path.filter, counters);
    return true;
}

static bool open_counters(const _Atomic uint8_t *first, const _Atomic uint8_t *last) {
    return stepped_memory_open(&filter_memory, (void *)(uintptr_t)first,
                               (size_t)(last - first) + 1);
}

/* Makes the counters of a range writable. The filter is a ring, so the counters of a range may
 * continue at its first counter. */
bool allocation_path_may_count(const void *from, size_t bytes) {
    const struct address_filter *const filter = &allocation_path.filter;
    if (!address_filter_is_open(filter))
        return true;
    const _Atomic uint8_t *const first = address_filter_at(filter, from);
    const _Atomic uint8_t *const last = address_filter_at(filter, (const char *)from + bytes - 1);
    if (first <= last)
        return open_counters(first, last);
    const _Atomic uint8_t *const counters = atomic_load(&filter->counters);
    return open_counters(first, &counters[ADDRESS_FILTER_ENTRIES - 1]) &&
           open_counters(counters, last);
}
