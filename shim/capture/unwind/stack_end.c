#include "stack_end.h"

#include "arch_code.h"
#include "cfi.h"
#include "symbols/object_symbols.h"

#include <string.h>

static bool follows_indirect_jump(const struct cfi_tables *tables, uintptr_t address) {
    const struct readable_range range = cfi_readable_around(tables, address - 1);
    if (address < range.start + ARCH_JUMP_BYTES || address > range.end)
        return false;
    return arch_is_indirect_jump((const uint8_t *)(address - ARCH_JUMP_BYTES));
}

bool stack_end_is_laid_out(struct modules *modules, uintptr_t address, uint32_t own_unloads) {
    struct cfi_tables tables;
    if (modules_open(modules, address, own_unloads, &tables) != MODULES_FOUND)
        return false;
    const bool is_start = tables.header && cfi_is_start(&tables, address);
    const bool is_behind_jump = /* a jump that no table describes */
        follows_indirect_jump(&tables, address) &&
        (!tables.header || cfi_rule(&tables, address - 1).cfa_kind == RULE_NONE);
    modules_close(modules, &tables);
    return is_start || is_behind_jump;
}

static bool is_greenlets_file(const char *path) {
    static const char name[] = "/_greenlet.";
    const size_t size = sizeof name - 1;
    const char *const slash = path ? strrchr(path, '/') : NULL;
    return slash && strnlen(slash, size) == size && memcmp(slash, name, size) == 0;
}

/* Compares with inner_bootstrap(). If the compiler has inlined that function, compares with its
 * only caller, g_initialstub(). */
bool stack_end_is_greenlets(const struct modules *modules, const struct cfi_tables *tables,
                            uintptr_t pc) {
    struct loaded_object found;
    if (tables->fixed || !modules->find_object || modules->find_object((void *)pc, &found) != 0)
        return false;
    const struct link_map *const object = found.link_map;
    if (!is_greenlets_file(object->l_name) || !object_symbols_defines(object, "PyInit__greenlet"))
        return false;
    const ElfW(Sym) *first = object_symbols_entry(
        object, "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object");
    if (!first)
        first = object_symbols_entry(object, "_ZN8greenlet12UserGreenlet13g_initialstubEPv");
    return first && pc - object->l_addr - first->st_value < first->st_size;
}
