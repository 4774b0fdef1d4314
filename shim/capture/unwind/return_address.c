#include "return_address.h"

#include "arch_code.h"
#include "arch_instruction.h"
#include "walk_view.h"

static bool is_near(uintptr_t a, uintptr_t b) {
    return (a > b ? a - b : b - a) <= arch_call_reach;
}

bool return_address_is_code(const struct unwinder *unwinder, const struct unwind *u, uintptr_t from,
                            uintptr_t address) {
    if (address < LOWEST_MAPPED || is_on_known_stack(u, address))
        return false;
    return is_near(address, from) ||
           is_near(address, atomic_load_explicit(unwinder->generated, memory_order_relaxed)) ||
           modules_span(unwinder->modules, address - 1);
}

/* --- code of an object --- */

static bool is_in(struct readable_range range, uintptr_t address) {
    return address - range.start < range.end - range.start;
}

/* Returns true if a direct call to code of the object ends at `address`. */
static bool follows_direct_call(const struct cfi_tables *tables, struct readable_range code,
                                uintptr_t address) {
    uintptr_t target;
    return arch_follows_direct_call(address, code.start, &target) &&
           (is_in(code, target) || is_in(cfi_code_around(tables, target), target));
}

bool return_address_follows_call(const struct cfi_tables *tables, uintptr_t address) {
    const struct readable_range code = cfi_code_around(tables, address - 1);
    return is_in(code, address - 1) && (follows_direct_call(tables, code, address) ||
                                        arch_follows_indirect_call(address, code.start));
}

/* Returns true for the address that a signal handler returns to, which no call precedes. */
static bool is_signal_trampoline(const struct cfi_tables *tables, uintptr_t address) {
    if (ARCH_PUSHED_RETURN && !tables->header)
        return false;
    const struct readable_range code = cfi_code_around(tables, address);
    const uintptr_t bytes = address < code.end ? code.end - address : 0;
    if (!arch_is_signal_return((const uint8_t *)address, bytes))
        return false;
    /* with a link register the trampoline is the kernel's, which no table describes */
    return !ARCH_PUSHED_RETURN || cfi_rule(tables, address - 1).cfa_kind == RULE_SIGNAL;
}

/* --- generated code --- */

bool return_address_follows_generated_call(uintptr_t address) {
    const uintptr_t low = address - ARCH_CALL_BYTES;
    uintptr_t called;
    return memory_is_readable(low) && memory_is_readable(address - 1) &&
           (arch_follows_direct_call(address, low, &called) ||
            arch_follows_indirect_call(address, low));
}

bool return_address_is_credible(const struct unwinder *unwinder, const struct unwind *u,
                                uintptr_t from, uintptr_t address) {
    struct cfi_tables tables;
    if (!return_address_is_code(unwinder, u, from, address))
        return false;
    if (modules_open(unwinder->modules, address - 1, u->own_unloads, &tables) != MODULES_FOUND)
        return return_address_follows_generated_call(address);
    const bool is_credible =
        return_address_follows_call(&tables, address) || is_signal_trampoline(&tables, address);
    modules_close(unwinder->modules, &tables);
    return is_credible;
}
