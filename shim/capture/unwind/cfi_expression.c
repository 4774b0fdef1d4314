#include "cfi_expression.h"

#include "arch_registers.h"
#include "cfi_reader.h"

struct evaluation {
    struct cfi_value stack[8];
    unsigned depth;
    bool failed;
};

static void cfi_expression_push(struct evaluation *v, struct cfi_value value) {
    if (v->depth == 8)
        v->failed = true;
    else
        v->stack[v->depth++] = value;
}

static struct cfi_value pop(struct evaluation *v) {
    if (v->depth == 0) {
        v->failed = true;
        return (struct cfi_value){.base = -1};
    }
    return v->stack[--v->depth];
}

static int64_t pop_constant(struct evaluation *v) {
    const struct cfi_value value = pop(v);
    v->failed |= value.base >= 0 || value.dereferenced;
    return value.constant;
}

static void push_constant(struct evaluation *v, int64_t constant) {
    cfi_expression_push(v, (struct cfi_value){.base = -1, .constant = constant});
}

/* Adds two numbers as DWARF does, modulo the size of an address. */
static int64_t wrapping_sum(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void add_constant(struct evaluation *v, int64_t constant) {
    struct cfi_value value = pop(v);
    if (value.dereferenced)
        value.addend = wrapping_sum(value.addend, constant);
    else
        value.constant = wrapping_sum(value.constant, constant);
    cfi_expression_push(v, value);
}

static void evaluate_binary(struct evaluation *v, unsigned opcode) {
    /* base + constant, in either order */
    if (opcode == 0x22 && v->depth >= 2 && v->stack[v->depth - 1].base >= 0) {
        const struct cfi_value swapped = v->stack[v->depth - 1];
        v->stack[v->depth - 1] = v->stack[v->depth - 2];
        v->stack[v->depth - 2] = swapped;
    }
    const int64_t right = pop_constant(v);
    if (opcode == 0x22) { /* plus */
        add_constant(v, right);
        return;
    }
    const int64_t left = pop_constant(v);
    switch (opcode) {
    case 0x1a:
        push_constant(v, left & right);
        return;
    case 0x24: /* shl */
        push_constant(v, (int64_t)((uint64_t)left << (right & 63)));
        return;
    case 0x2a:
        push_constant(v, left >= right);
        return;
    default:
        v->failed = true;
    }
}

static void evaluate_one(struct evaluation *v, struct reader *r, uintptr_t pc) {
    const unsigned opcode = (unsigned)read_unsigned(r, 1);
    if (opcode >= 0x30 && opcode <= 0x4f) { /* lit0..31 */
        push_constant(v, opcode - 0x30);
        return;
    }
    if (opcode >= 0x70 && opcode <= 0x8f) { /* breg0..31; the pc is known */
        const int64_t offset = read_sleb(r);
        if (opcode - 0x70 == REGISTER_PC)
            push_constant(v, wrapping_sum((int64_t)pc, offset));
        else
            cfi_expression_push(
                v, (struct cfi_value){.base = (int8_t)(opcode - 0x70), .constant = offset});
        return;
    }
    switch (opcode) {
    case 0x06: { /* deref */
        struct cfi_value value = pop(v);
        v->failed |= value.base < 0 || value.dereferenced;
        value.dereferenced = true;
        cfi_expression_push(v, value);
        return;
    }
    case 0x08:
        push_constant(v, (int64_t)read_unsigned(r, 1));
        return;
    case 0x09:
        push_constant(v, read_signed(r, 1));
        return;
    case 0x23: /* plus_uconst */
        add_constant(v, (int64_t)read_uleb(r));
        return;
    default:
        evaluate_binary(v, opcode);
    }
}

bool cfi_evaluate(uintptr_t place, uintptr_t end, uintptr_t pc, struct cfi_value *result) {
    struct reader r = {place, end, false};
    const uint64_t size = read_uleb(&r);
    if (!reader_has(&r, size))
        return false;
    r.end = r.at + size;
    struct evaluation v = {.depth = 0};
    while (r.at < r.end && !r.failed && !v.failed)
        evaluate_one(&v, &r, pc);
    *result = pop(&v);
    return !r.failed && !v.failed && v.depth == 0;
}
