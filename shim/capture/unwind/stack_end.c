#include "stack_end.h"

#include "cfi.h"

enum { JUMP_BYTES = 2 };

/* ff /4 with a register (Intel SDM, volume 2, JMP); a REX prefix may stand before it. */
static bool follows_indirect_jump(const struct cfi_tables *tables, uintptr_t address) {
    const struct readable_range range = cfi_readable_around(tables, address - 1);
    if (address < range.start + JUMP_BYTES || address > range.end)
        return false;
    const uint8_t *const jump = (const uint8_t *)(address - JUMP_BYTES);
    return jump[0] == 0xff && (jump[1] & 0xf8) == 0xe0;
}

static bool is_described(const struct cfi_tables *tables, uintptr_t pc) {
    return tables->header && cfi_rule(tables, pc).cfa_kind != RULE_NONE;
}

bool stack_end_is_laid_out(struct modules *modules, uintptr_t address, uint32_t own_unloads) {
    struct cfi_tables tables;
    if (modules_open(modules, address, own_unloads, &tables) != MODULES_FOUND)
        return false;
    const bool is_start = tables.header && cfi_is_start(&tables, address);
    const bool is_behind_jump =
        follows_indirect_jump(&tables, address) && !is_described(&tables, address - 1);
    modules_close(modules, &tables);
    return is_start || is_behind_jump;
}
