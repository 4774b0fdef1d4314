#include "next_symbol.h"
#include "object_symbols.h"

#include <dlfcn.h>
#include <stddef.h>

void *next_symbol(const char *name) {
    void *const found = dlsym ? dlsym(RTLD_NEXT, name) : NULL;
    if (found || libc_is_complete())
        return found;
    const struct link_map *const own = object_symbols_own();
    for (const struct link_map *object = own ? own->l_next : NULL; object;
         object = object->l_next) {
        void *const symbol = object_symbols_find(object, name);
        if (symbol)
            return symbol;
    }
    return NULL;
}
