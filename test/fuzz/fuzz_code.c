/* Fuzzes code that no table describes. Whatever bytes there are, the search reads none outside of
 * them and ends, and its result is a rule that the walker knows.
 *
 * Input: a byte that says where to begin; then code. */
#include "arch_instruction.h"
#include "fuzz.h"
#include "unwind/code_rule.h"

static void check_rule(struct rule rule) {
    const bool is_record = rule_is_of_record(rule);
    promise(is_record || rule.cfa_kind == RULE_CODE_SP || rule.cfa_kind == RULE_CODE_FP);
    promise(rule.fp_kind == FP_SAME || rule.fp_kind == FP_AT_CFA || rule.fp_kind == FP_LOST);
    promise(is_record || rule.cfa_offset % 8 == 0);
    promise(!rule.after_call);
}

static void look_up(const uint8_t *code, size_t size, size_t from) {
    const struct code_view view = {(uintptr_t)code, (uintptr_t)code + size, false};
    const struct rule rule = code_rule(&view, (uintptr_t)code + from);
    check_rule(rule);
    const struct rule again = code_rule(&view, (uintptr_t)code + from);
    promise(rule.cfa_kind == again.cfa_kind && rule.cfa_offset == again.cfa_offset);
}

static void decode(const uint8_t *code, size_t size, size_t from) {
    const struct instruction i = arch_instruction(code + from, size - from);
    promise(i.effect == EFFECT_UNKNOWN || (i.length > 0 && i.length <= size - from));
    uintptr_t target;
    (void)arch_follows_direct_call((uintptr_t)code + from, (uintptr_t)code, &target);
    (void)arch_follows_indirect_call((uintptr_t)code + from, (uintptr_t)code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    const size_t from = take_byte(&input);
    uint8_t *const code = take_rest(&input, &size);
    look_up(code, size, from);
    for (size_t i = 0; i < size && i < 256; i++)
        decode(code, size, i);
    free(code);
    return 0;
}
