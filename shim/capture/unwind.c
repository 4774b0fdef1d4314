#include "unwind.h"

#include "arch/x86_64.h"

/* A frame being walked. `pc` is where to look: the exact pc of a leaf or interrupted frame, the
 * return address - 1 of a caller, which lies in the call instruction. */
struct frame {
    bool is_caller;
    uintptr_t pc;
    uintptr_t rsp;
    uintptr_t rbp;
    bool rbp_known;
    struct stack_range stack;
};

/* The farthest that two frames of one JIT compiler lie apart: V8 and HotSpot reserve at most
 * 256 MiB of code space. */
static const uintptr_t jit_reach = UINT64_C(256) << 20;

/* A leaf may use 128 bytes below rsp (psABI 3.2.2, the red zone): in an epilogue the CFI still
 * points at registers there that have just been popped. Of these, what shares rsp's page is mapped.
 */
static uintptr_t lowest_readable(uintptr_t rsp) {
    const uintptr_t red_zone = rsp - 128;
    const uintptr_t page = rsp & ~(uintptr_t)4095;
    return red_zone > page ? red_zone : page;
}

static struct stack_range range_of(const struct unwind *u, uintptr_t rsp) {
    const uintptr_t low = lowest_readable(rsp);
    if (rsp >= u->thread_stack.low && rsp < u->thread_stack.high)
        return (struct stack_range){low, u->thread_stack.high};
    if (rsp >= u->signal_stack.low && rsp < u->signal_stack.high)
        return (struct stack_range){low, u->signal_stack.high};
    /* A stack that nobody told us of (fibres): the page that rsp is in is mapped, no more is
     * known. */
    return (struct stack_range){low, (rsp | 4095) + 1};
}

/* Reads one word of the stack; the range's low end follows rsp upwards. */
static bool read_stack(const struct frame *frame, uintptr_t address, uintptr_t *value) {
    if (address < frame->stack.low || address > frame->stack.high - sizeof *value)
        return false;
    if (frame->stack.high < sizeof *value || (address & 7))
        return false;
    *value = *(const volatile uintptr_t *)address;
    return true;
}

/* Whether the instruction before `address` is a call: e8 with 4 bytes, or ff /2 with a register or
 * a memory operand, 2 to 7 bytes long (Intel SDM, volume 2, CALL). */
static bool follows_call(uintptr_t address) {
    const uint8_t *const next = (const uint8_t *)address;
    if (next[-5] == 0xe8)
        return true;
    for (int length = 2; length <= 7; length++)
        if (next[-length] == 0xff && ((next[-length + 1] >> 3) & 7) == 2)
            return true;
    return false;
}

static struct rule rule_for(const struct unwinder *unwinder, uintptr_t pc) {
    struct rule rule;
    if (rule_cache_lookup(unwinder->rules, pc, &rule))
        return rule;
    struct cfi_tables tables;
    if (!modules_tables(unwinder->modules, pc, &tables))
        return (struct rule){.cfa_kind = RULE_NONE, .rbp_kind = RBP_LOST};
    rule = (struct rule){.cfa_kind = RULE_NONE, .rbp_kind = RBP_SAME};
    if (tables.header)
        rule = cfi_rule(&tables, pc);
    /* covered by a description, so it is code and can be read */
    if (rule.cfa_kind != RULE_NONE && pc - tables.start >= 8)
        rule.after_call = follows_call(pc + 1);
    rule_cache_store(unwinder->rules, pc, rule);
    return rule;
}

static bool canonical_frame_address(const struct frame *frame, struct rule rule, uintptr_t *cfa) {
    const uintptr_t offset = (uintptr_t)(intptr_t)rule.cfa_offset;
    switch (rule.cfa_kind) {
    case RULE_RSP:
        *cfa = frame->rsp + offset;
        return true;
    case RULE_AT_RSP:
        return read_stack(frame, frame->rsp + offset, cfa);
    case RULE_RBP:
        *cfa = frame->rbp + offset;
        return frame->rbp_known;
    case RULE_AT_RBP:
        return frame->rbp_known && read_stack(frame, frame->rbp + offset, cfa);
    default:
        return false;
    }
}

static bool restore_rbp(struct frame *frame, struct rule rule, uintptr_t cfa) {
    const uintptr_t offset = (uintptr_t)(intptr_t)rule.rbp_offset;
    switch (rule.rbp_kind) {
    case RBP_SAME:
        return true;
    case RBP_AT_CFA:
        /* beyond the readable part of the red zone: popped already, so still in the register */
        return cfa + offset < frame->stack.low || read_stack(frame, cfa + offset, &frame->rbp);
    case RBP_AT_RBP:
        return frame->rbp_known && read_stack(frame, frame->rbp + offset, &frame->rbp);
    default:
        frame->rbp_known = false;
        return true;
    }
}

enum step { STEP_ON, STEP_END, STEP_LOST };

static enum step step_by_rule(struct frame *frame, struct rule rule) {
    uintptr_t cfa;
    uintptr_t return_address;
    if (!canonical_frame_address(frame, rule, &cfa) || cfa <= frame->rsp)
        return STEP_LOST;
    if (!read_stack(frame, cfa - 8, &return_address) || !restore_rbp(frame, rule, cfa))
        return STEP_LOST;
    if (return_address == 0)
        return STEP_END;
    frame->is_caller = true;
    frame->pc = return_address - 1;
    frame->rsp = cfa;
    frame->stack.low = cfa;
    return STEP_ON;
}

/* Out of a signal handler: all registers are in the ucontext at rsp; the stack may be another. */
static enum step step_by_signal(const struct unwind *u, struct frame *frame) {
    uintptr_t rip;
    uintptr_t rsp;
    uintptr_t rbp;
    if (!read_stack(frame, frame->rsp + SIGFRAME_RIP, &rip) ||
        !read_stack(frame, frame->rsp + SIGFRAME_RSP, &rsp) ||
        !read_stack(frame, frame->rsp + SIGFRAME_RBP, &rbp))
        return STEP_LOST;
    const struct stack_range next = range_of(u, rsp);
    const bool same_stack = next.high == frame->stack.high;
    if (same_stack && rsp <= frame->rsp)
        return STEP_LOST;
    *frame = (struct frame){.pc = rip, .rsp = rsp, .rbp = rbp, .rbp_known = true, .stack = next};
    return rip ? STEP_ON : STEP_END;
}

/* Through code that no module holds, by the frame pointer: it must point up the stack, and the
 * return address into a module's code or near the code that we came from. */
static enum step step_by_frame_pointer(const struct unwinder *unwinder, struct frame *frame) {
    uintptr_t return_address;
    uintptr_t rbp;
    if (!frame->rbp_known || frame->rbp < frame->rsp)
        return STEP_LOST;
    if (!read_stack(frame, frame->rbp, &rbp) || !read_stack(frame, frame->rbp + 8, &return_address))
        return STEP_LOST;
    const uintptr_t distance =
        return_address > frame->pc ? return_address - frame->pc : frame->pc - return_address;
    struct cfi_tables tables;
    if (distance > jit_reach && !modules_tables(unwinder->modules, return_address - 1, &tables))
        return STEP_LOST;
    if (return_address < 4096)
        return STEP_LOST;
    frame->is_caller = true;
    frame->pc = return_address - 1;
    frame->rsp = frame->rbp + 16;
    frame->stack.low = frame->rsp;
    frame->rbp = rbp;
    return STEP_ON;
}

static bool is_on_stack(const struct unwind *u, uintptr_t pc) {
    return (pc >= u->thread_stack.low && pc < u->thread_stack.high) ||
           (pc >= u->signal_stack.low && pc < u->signal_stack.high);
}

/* A caller's frame is believed only if the code there has just called: stale or overwritten stack
 * slots (an exception being resumed rewrites return addresses) must not become frames. Trampolines
 * and outermost frames are returned to without a call; code of no module cannot be asked. */
static bool is_credible(const struct unwind *u, const struct frame *frame, struct rule rule) {
    if (!frame->is_caller || rule.cfa_kind == RULE_SIGNAL || rule.cfa_kind == RULE_END)
        return true;
    if (rule.cfa_kind == RULE_NONE) /* a stack holds no code */
        return rule.rbp_kind == RBP_LOST && !is_on_stack(u, frame->pc);
    return rule.after_call;
}

static bool list(const struct unwinder *unwinder, struct unwind *u, uintptr_t pc) {
    if (pc >= unwinder->own_start && pc < unwinder->own_end)
        return true;
    if (u->count == u->max)
        return false;
    u->frames[u->count++] = pc;
    return true;
}

enum unwind_end unwind_walk(const struct unwinder *unwinder,
                            const uint64_t registers[REGISTER_COUNT], struct unwind *u) {
    struct frame frame = {
        .pc = registers[REGISTER_RIP],
        .rsp = registers[REGISTER_RSP],
        .rbp = registers[REGISTER_RBP],
        .rbp_known = true,
        .stack = range_of(u, registers[REGISTER_RSP]),
    };
    u->count = 0;
    u->crossed_signal = false;
    /* bounded: rsp grows at each step, and own frames, which are not listed, are few */
    for (uint32_t steps = 0; steps <= u->max + 16; steps++) {
        const struct rule rule = rule_for(unwinder, frame.pc);
        if (!is_credible(u, &frame, rule))
            return UNWIND_TRUNCATED;
        if (!list(unwinder, u, frame.pc))
            return UNWIND_DEPTH;
        enum step step;
        if (rule.cfa_kind >= RULE_RSP)
            step = step_by_rule(&frame, rule);
        else if (rule.cfa_kind == RULE_END)
            return UNWIND_COMPLETE;
        else if (rule.cfa_kind == RULE_EXPRESSION)
            return UNWIND_EXPRESSION;
        else if (rule.cfa_kind == RULE_SIGNAL) {
            u->crossed_signal = true;
            step = step_by_signal(u, &frame);
        } else if (rule.rbp_kind == RBP_LOST) /* no module */
            step = step_by_frame_pointer(unwinder, &frame);
        else
            step = STEP_LOST;
        if (step != STEP_ON)
            return step == STEP_END ? UNWIND_COMPLETE : UNWIND_TRUNCATED;
    }
    return UNWIND_DEPTH;
}
