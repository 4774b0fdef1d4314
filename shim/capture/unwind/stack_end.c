#include "stack_end.h"

#include "arch_code.h"
#include "cfi.h"

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
