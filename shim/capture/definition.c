#include "definition.h"
#include "object_symbols.h"

#include <stddef.h>

bool definition_comes_before_ours(const char *name) {
    const struct link_map *const own = object_symbols_own();
    for (const struct link_map *object = own ? own->l_prev : NULL; object; object = object->l_prev)
        if (object_symbols_find(object, name))
            return true;
    return false;
}
