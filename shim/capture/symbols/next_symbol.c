#include "next_symbol.h"

#include <dlfcn.h>
#include <errno.h>

static size_t count_missing(const struct symbol *symbols, size_t count) {
    size_t missing = 0;
    for (size_t i = 0; i < count; i++)
        missing += symbols[i].address == NULL;
    return missing;
}

static void find_from(const struct link_map *object, struct symbol *symbols, size_t count) {
    const struct link_map *const own = object_symbols_own();
    for (; object && count_missing(symbols, count) > 0; object = object->l_next)
        if (object != own)
            object_symbols_find_all(object, symbols, count);
}

bool next_symbols_follow_profiler(void) {
    const struct link_map *const own = object_symbols_own();
    const struct link_map *object = own ? own->l_next : NULL;
    while (object && !object_symbols_defines(object, "gnu_get_libc_version"))
        object = object->l_next;
    return object != NULL;
}

static void ask_loader(struct symbol *symbols, size_t count) {
    for (size_t i = 0; i < count && dlsym; i++)
        if (!symbols[i].address)
            symbols[i].address = dlsym(RTLD_NEXT, symbols[i].name);
}

void next_symbols(struct symbol *symbols, size_t count) {
    const struct link_map *const own = object_symbols_own();
    if (!own)
        ask_loader(symbols, count);
    else if (next_symbols_follow_profiler())
        find_from(own->l_next, symbols, count);
    else
        find_from(object_symbols_first(), symbols, count);
}

void *next_symbol(const char *name) {
    struct symbol symbol = {.name = name};
    next_symbols(&symbol, 1);
    return symbol.address;
}

void *next_symbol_search_once(_Atomic(void *) *kept, const char *name) {
    const int saved = errno;
    void *const found = next_symbol(name);
    atomic_store_explicit(kept, found, memory_order_relaxed);
    errno = saved;
    return found;
}

void *first_symbol(const char *name) {
    struct symbol symbol = {.name = name};
    find_from(object_symbols_first(), &symbol, 1);
    return symbol.address;
}
