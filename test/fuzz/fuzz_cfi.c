/* Fuzzes unwind tables: in a signal handler, whatever bytes a module has for them, nothing outside
 * of the module is read, and the result is a rule that the walker knows.
 *
 * Input: a pc, four bytes relative to the tables; then .eh_frame_hdr and .eh_frame.
 */
#include "fuzz.h"
#include "unwind/cfi.h"

enum { MAX_FUNCTIONS = 16 };

static void check_rule(struct rule rule) {
    promise(rule.cfa_kind <= RULE_AT_FP_16);
    promise(rule.cfa_kind != RULE_GENERATED && rule.cfa_kind != RULE_CHANGING);
    promise(rule.fp_kind <= FP_LOST);
    promise(!rule.after_call);
}

static bool same(struct rule a, struct rule b) {
    return a.cfa_kind == b.cfa_kind && a.cfa_offset == b.cfa_offset && a.fp_kind == b.fp_kind &&
           a.fp_offset == b.fp_offset;
}

static void look_up(const struct cfi_tables *tables, uintptr_t pc) {
    const struct rule rule = cfi_rule(tables, pc);
    check_rule(rule);
    promise(same(rule, cfi_rule(tables, pc)));
    const bool wide_gap = cfi_is_gap(tables, pc, 4096);
    const bool gap = cfi_is_gap(tables, pc, 1);
    promise(gap || !wide_gap);
    promise(!gap || rule.cfa_kind == RULE_NONE);
    (void)cfi_is_start(tables, pc);
}

/* Looks up the beginnings of functions in the table itself, if it is where linkers put it. */
static void look_up_functions(const struct cfi_tables *tables, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < MAX_FUNCTIONS && 12 + 8 * i + 4 <= size; i++) {
        int32_t start;
        memcpy(&start, bytes + 12 + 8 * i, sizeof start);
        const uintptr_t pc = tables->header + (uintptr_t)(intptr_t)start;
        look_up(tables, pc);
        look_up(tables, pc + 9);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    uint32_t offset = 0;
    for (int i = 0; i < 4; i++)
        offset |= (uint32_t)take_byte(&input) << 8 * i;
    uint8_t *const bytes = take_rest(&input, &size);
    const uintptr_t start = (uintptr_t)bytes;
    const struct cfi_tables tables = {.header = start, .start = start, .end = start + size};
    look_up(&tables, start + (uintptr_t)(intptr_t)(int32_t)offset);
    look_up(&tables, offset);
    look_up_functions(&tables, bytes, size);
    free(bytes);
    return 0;
}
