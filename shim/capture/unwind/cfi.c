#include "cfi.h"

#include "arch_registers.h"
#include "cfi_entry.h"
#include "cfi_expression.h"
#include "cfi_reader.h"

/* exceeds the depth that occurs: compilers nest once, hand-written code twice */
enum { REMEMBERED_ROWS = 8 };

enum location_kind { SAME_VALUE, UNDEFINED, AT_CFA, EXPRESSION, ELSEWHERE };

/* Describes where one of the caller's registers is. */
struct location {
    uint8_t kind;
    int64_t offset;       /* AT_CFA */
    uintptr_t expression; /* EXPRESSION: its length and bytes */
};

struct row {
    uint64_t cfa_register;
    int64_t cfa_offset;
    uintptr_t cfa_expression; /* not 0: the CFA is an expression */
    struct location fp;
    struct location return_address;
};

/* --- executing call frame instructions --- */

struct execution {
    const struct cie *cie;
    struct row row;
    struct row initial;
    struct row remembered[REMEMBERED_ROWS];
    unsigned remembered_count;
    uintptr_t location;
    uintptr_t pc;
    bool done;
};

/* Reads an operand in units of the data alignment. Nonsense gives a wrapped product, which fits no
 * rule or leads to no return address. */
static int64_t factored(const struct execution *e, uint64_t operand) {
    return (int64_t)(operand * (uint64_t)e->cie->data_align);
}

static void set_location(struct execution *e, uint64_t number, struct location location) {
    if (number == REGISTER_FP)
        e->row.fp = location;
    else if (number == e->cie->return_register)
        e->row.return_address = location;
}

static void restore_location(struct execution *e, uint64_t number) {
    if (number == REGISTER_FP)
        e->row.fp = e->initial.fp;
    else if (number == e->cie->return_register)
        e->row.return_address = e->initial.return_address;
}

static void advance(struct execution *e, uint64_t delta) {
    const uintptr_t next = e->location + delta * e->cie->code_align;
    if (next > e->pc || next < e->location)
        e->done = true;
    else
        e->location = next;
}

static void define_cfa(struct execution *e, uint64_t number, int64_t offset) {
    e->row.cfa_register = number;
    e->row.cfa_offset = offset;
    e->row.cfa_expression = 0;
}

static uintptr_t skip_expression(struct reader *r) {
    const uintptr_t start = r->at;
    skip(r, read_uleb(r));
    return start;
}

/* Executes an instruction that places a register. Returns false if `opcode` is of another kind. */
static bool execute_register(struct execution *e, struct reader *r, unsigned opcode) {
    uint64_t number;
    switch (opcode) {
    case 0x05: /* offset_extended */
        number = read_uleb(r);
        set_location(e, number, (struct location){AT_CFA, factored(e, read_uleb(r)), 0});
        return true;
    case 0x06: /* restore_extended */
        restore_location(e, read_uleb(r));
        return true;
    case 0x07: /* undefined */
        set_location(e, read_uleb(r), (struct location){UNDEFINED, 0, 0});
        return true;
    case 0x08: /* same_value */
        set_location(e, read_uleb(r), (struct location){SAME_VALUE, 0, 0});
        return true;
    case 0x09: /* register */
    case 0x14: /* val_offset */
        number = read_uleb(r);
        (void)read_uleb(r);
        set_location(e, number, (struct location){ELSEWHERE, 0, 0});
        return true;
    case 0x15: /* val_offset_sf */
        number = read_uleb(r);
        (void)read_sleb(r);
        set_location(e, number, (struct location){ELSEWHERE, 0, 0});
        return true;
    case 0x10: /* expression */
        number = read_uleb(r);
        set_location(e, number, (struct location){EXPRESSION, 0, skip_expression(r)});
        return true;
    case 0x16: /* val_expression */
        number = read_uleb(r);
        (void)skip_expression(r);
        set_location(e, number, (struct location){ELSEWHERE, 0, 0});
        return true;
    case 0x11: /* offset_extended_sf */
        number = read_uleb(r);
        set_location(e, number, (struct location){AT_CFA, factored(e, (uint64_t)read_sleb(r)), 0});
        return true;
    default:
        return false;
    }
}

/* Executes an instruction that defines the CFA. Returns false if `opcode` is of another kind. */
static bool execute_cfa(struct execution *e, struct reader *r, unsigned opcode) {
    uint64_t number;
    switch (opcode) {
    case 0x0c: /* def_cfa */
        number = read_uleb(r);
        define_cfa(e, number, (int64_t)read_uleb(r));
        return true;
    case 0x0d: /* def_cfa_register */
        define_cfa(e, read_uleb(r), e->row.cfa_offset);
        return true;
    case 0x0e: /* def_cfa_offset */
        define_cfa(e, e->row.cfa_register, (int64_t)read_uleb(r));
        return true;
    case 0x0f: /* def_cfa_expression */
        e->row.cfa_expression = skip_expression(r);
        return true;
    case 0x12: /* def_cfa_sf */
        number = read_uleb(r);
        define_cfa(e, number, factored(e, (uint64_t)read_sleb(r)));
        return true;
    case 0x13: /* def_cfa_offset_sf */
        define_cfa(e, e->row.cfa_register, factored(e, (uint64_t)read_sleb(r)));
        return true;
    default:
        return false;
    }
}

static void execute_other(struct execution *e, struct reader *r, unsigned opcode) {
    switch (opcode) {
    case 0x00: /* nop */
        return;
    case 0x01: /* set_loc */ {
        const uintptr_t next = read_pointer(r, e->cie->pointer_encoding, 0);
        if (next > e->pc)
            e->done = true;
        else
            e->location = next;
        return;
    }
    case 0x02:
        advance(e, read_unsigned(r, 1));
        return;
    case 0x03:
        advance(e, read_unsigned(r, 2));
        return;
    case 0x04:
        advance(e, read_unsigned(r, 4));
        return;
    case 0x0a: /* remember_state */
        if (e->remembered_count == REMEMBERED_ROWS)
            r->failed = true;
        else
            e->remembered[e->remembered_count++] = e->row;
        return;
    case 0x0b: /* restore_state */
        if (e->remembered_count == 0)
            r->failed = true;
        else
            e->row = e->remembered[--e->remembered_count];
        return;
    case 0x2e: /* GNU_args_size */
        (void)read_uleb(r);
        return;
    /* how a return address is signed: the walker removes any signature (arch_return_address) */
    case 0x2b: /* AARCH64_set_ra_state */
        (void)read_uleb(r);
        (void)read_sleb(r);
        r->failed |= ARCH_PUSHED_RETURN != 0;
        return;
    case 0x2c: /* AARCH64_negate_ra_state_with_pc */
    case 0x2d: /* AARCH64_negate_ra_state */
        r->failed |= ARCH_PUSHED_RETURN != 0;
        return;
    default:
        r->failed = true;
    }
}

static bool execute(struct execution *e, struct reader r) {
    while (!e->done && !r.failed && r.at < r.end) {
        const unsigned byte = (unsigned)read_unsigned(&r, 1);
        const unsigned operand = byte & 0x3f;
        switch (byte >> 6) {
        case 1:
            advance(e, operand);
            break;
        case 2:
            set_location(e, operand, (struct location){AT_CFA, factored(e, read_uleb(&r)), 0});
            break;
        case 3:
            restore_location(e, operand);
            break;
        default:
            if (!execute_register(e, &r, byte) && !execute_cfa(e, &r, byte))
                execute_other(e, &r, byte);
        }
    }
    return !r.failed;
}

/* --- from row to rule --- */

static const struct rule not_described = {.cfa_kind = RULE_NONE};
static const struct rule not_expressible = {.cfa_kind = RULE_EXPRESSION};

static uintptr_t end_around(const struct cfi_tables *tables, uintptr_t place) {
    return cfi_readable_around(tables, place).end;
}

static bool set_cfa(const struct cfi_tables *tables, const struct row *row, uintptr_t pc,
                    struct rule *rule) {
    struct cfi_value cfa = {.base = (int8_t)(row->cfa_register & 0x7f),
                            .constant = row->cfa_offset};
    if (row->cfa_expression &&
        !cfi_evaluate(row->cfa_expression, end_around(tables, row->cfa_expression), pc, &cfa))
        return false;
    if (cfa.constant != (int32_t)cfa.constant)
        return false;
    if (cfa.base != REGISTER_SP && cfa.base != REGISTER_FP)
        return false;
    const bool from_sp = cfa.base == REGISTER_SP;
    if (cfa.dereferenced && cfa.addend == 8)
        rule->cfa_kind = from_sp ? RULE_AT_SP_8 : RULE_AT_FP_8;
    else if (cfa.dereferenced && cfa.addend == 0)
        rule->cfa_kind = from_sp ? RULE_AT_SP : RULE_AT_FP;
    else if (cfa.dereferenced && cfa.addend == 16 && !from_sp)
        rule->cfa_kind = RULE_AT_FP_16;
    else if (cfa.dereferenced)
        return false;
    else
        rule->cfa_kind = from_sp ? RULE_SP : RULE_FP;
    rule->cfa_offset = (int32_t)cfa.constant;
    return true;
}

static bool set_fp(const struct cfi_tables *tables, const struct row *row, uintptr_t pc,
                   struct rule *rule) {
    struct cfi_value saved = {.base = REGISTER_FP};
    switch (row->fp.kind) {
    case SAME_VALUE:
        rule->fp_kind = FP_SAME;
        return true;
    case AT_CFA:
        rule->fp_kind = FP_AT_CFA;
        rule->fp_offset = (int32_t)row->fp.offset;
        return rule->fp_offset == row->fp.offset;
    case EXPRESSION:
        if (!cfi_evaluate(row->fp.expression, end_around(tables, row->fp.expression), pc, &saved))
            return false;
        rule->fp_kind = FP_AT_FP;
        rule->fp_offset = (int32_t)saved.constant;
        return saved.base == REGISTER_FP && !saved.dereferenced &&
               rule->fp_offset == saved.constant;
    case UNDEFINED:
        rule->fp_kind = FP_LOST;
        return true;
    default:
        return false;
    }
}

static bool set_return(const struct row *row, struct rule *rule) {
    const struct location *const location = &row->return_address;
    if (ARCH_PUSHED_RETURN)
        return location->kind == AT_CFA && location->offset == ARCH_PUSHED_RETURN;
    rule->return_offset = location->kind == AT_CFA ? (int32_t)location->offset : 0;
    return location->kind == SAME_VALUE || (location->kind == AT_CFA && location->offset &&
                                            rule->return_offset == location->offset);
}

static struct rule rule_of(const struct cfi_tables *tables, const struct fde *fde,
                           const struct row *row, uintptr_t pc) {
    struct rule rule = {.fp_kind = FP_SAME};
    if (row->return_address.kind == UNDEFINED) {
        rule.cfa_kind = RULE_END;
        return rule;
    }
    if (!set_cfa(tables, row, pc, &rule))
        return not_expressible;
    if (fde->cie.signal_frame) {
        if (!arch_is_signal_frame(rule.cfa_kind == RULE_AT_SP, rule.cfa_offset))
            return not_expressible;
        rule.cfa_kind = RULE_SIGNAL;
        return rule;
    }
    return set_return(row, &rule) && set_fp(tables, row, pc, &rule) ? rule : not_expressible;
}

struct rule cfi_entry_rule(const struct cfi_tables *tables, const struct fde *fde, uintptr_t pc) {
    if (pc < fde->pc_start || pc >= fde->pc_end)
        return not_described;

    struct execution e = {.cie = &fde->cie, .location = fde->pc_start, .pc = pc};
    if (!execute(&e, fde->cie.instructions))
        return not_expressible;
    e.initial = e.row;
    e.done = false;
    if (!execute(&e, fde->instructions))
        return not_expressible;
    return rule_of(tables, fde, &e.row, pc);
}

struct rule cfi_rule(const struct cfi_tables *tables, uintptr_t pc) {
    struct fde fde;
    if (!cfi_entry_before(tables, pc, &fde))
        return not_described;
    return cfi_entry_rule(tables, &fde, pc);
}
