#include "module_generation.h"

#include "symbols/object_symbols.h"
#include "unwind/stack_memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Has the layout of glibc's struct (sysdeps/generic/ldsodefs.h). */
struct slot {
    size_t generation;
    const struct link_map *object;
};
struct slot_list {
    size_t count;
    const struct slot_list *next;
    struct slot slots[];
};

/* Describes a field as glibc describes it to debuggers (nptl_db/db_info.c). */
struct field {
    uint32_t bits;
    uint32_t count;
    uint32_t offset;
};

/* Copies only if the memory is readable: an offset that was learned wrongly may lead to an unmapped
 * page. */
static bool copy_if_readable(void *to, const void *from, size_t size) {
    const uintptr_t first = (uintptr_t)from;
    if (!from || !memory_range_is_readable(first, size))
        return false;
    memcpy(to, from, size);
    return true;
}

static const struct slot_list *first_list(void) {
    enum { LOADER, FIELD, NAMES };
    struct symbol symbols[NAMES] = {
        [LOADER] = {.name = "_rtld_global"},
        [FIELD] = {.name = "_thread_db_rtld_global__dl_tls_dtv_slotinfo_list"}};
    const struct slot_list *list = NULL;
    struct field field;
    for (const struct link_map *o = object_symbols_first(); o; o = o->l_next)
        object_symbols_find_all(o, symbols, NAMES);
    if (!symbols[LOADER].address ||
        !copy_if_readable(&field, symbols[FIELD].address, sizeof field) ||
        field.bits != 8 * sizeof list || field.count != 1 ||
        field.offset > symbols[LOADER].entry->st_size - sizeof list ||
        !copy_if_readable(&list, (const char *)symbols[LOADER].address + field.offset, sizeof list))
        return NULL;
    return list;
}

static bool module_generation_find(uint64_t module, struct slot *slot) {
    struct slot_list list;
    uint64_t number = module;
    for (const struct slot_list *at = first_list(); copy_if_readable(&list, at, sizeof list);
         at = list.next) {
        if (number < list.count)
            return copy_if_readable(slot, &at->slots[number], sizeof *slot);
        if (list.count == 0)
            return false;
        number -= list.count;
    }
    return false;
}

uint64_t module_generation(uint64_t module, const ElfW(Dyn) * dynamic) {
    struct link_map object;
    struct slot slot;
    if (!module_generation_find(module, &slot) ||
        !copy_if_readable(&object, slot.object, sizeof object) || object.l_ld != dynamic)
        return GENERATION_UNKNOWN;
    return slot.generation;
}
