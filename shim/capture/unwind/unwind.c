#include "unwind.h"

#include "arch_code.h"
#include "arch_memory.h"
#include "stack_end.h"
#include "walk_view.h"

/* A frame being walked. `pc` is where to look: the exact pc of a leaf or interrupted frame, the
 * return address - 1 of a caller, which lies in the call instruction. */
struct frame {
    bool is_caller;
    bool is_checked; /* is_return_address() held */
    bool fp_known;
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t fp;
    uintptr_t link; /* the link register, if it has one that is still the leaf's; 0: no */
    struct stack_view stack;
};

enum {
    GENERATED_CODE_BYTES = 16 << 10, /* a gap this long is no single function */
    LOWEST_CODE = 65536,             /* vm.mmap_min_addr: nothing is mapped below */
    LARGEST_FRAME = 1 << 20,         /* of a function: more is no frame */
};

/* --- stacks --- */

static bool read_stack(struct frame *frame, uintptr_t address, uintptr_t *value) {
    return stack_view_read(&frame->stack, address, value);
}

/* --- rules --- */

/* Whether a call ends at pc + 1, in a segment that can be read. */
static bool is_after_call(const struct cfi_tables *tables, uintptr_t pc) {
    const struct readable_range range = cfi_readable_around(tables, pc);
    if (pc < range.start || pc >= range.end)
        return false;
    return arch_follows_call(pc + 1, pc - range.start < ARCH_CALL_BYTES ? range.start
                                                                        : pc - ARCH_CALL_BYTES);
}

static struct rule compute_rule(const struct cfi_tables *tables, uintptr_t pc) {
    struct rule rule = {.cfa_kind = RULE_GENERATED, .fp_kind = FP_SAME};
    if (!tables->header)
        return rule;
    rule = cfi_rule(tables, pc);
    if (rule.cfa_kind == RULE_NONE && cfi_is_gap(tables, pc, GENERATED_CODE_BYTES))
        rule.cfa_kind = RULE_GENERATED;
    else if (rule.cfa_kind != RULE_NONE)
        rule.after_call = is_after_call(tables, pc);
    return rule;
}

static struct rule_key key_of(const struct frame *frame) {
    return (struct rule_key){frame->pc + frame->is_caller, !frame->is_caller};
}

static struct rule rule_for(const struct unwinder *unwinder, struct unwind *u,
                            const struct frame *frame) {
    const uintptr_t pc = frame->pc;
    const struct rule_key key = key_of(frame);
    const uint64_t generation = rule_cache_generation(unwinder->rules);
    const uint64_t word = rule_cache_word(unwinder->rules, key);
    if (rule_word_is_for(word, generation, key))
        return rule_unpack(word);
    u->cold = true;
    struct cfi_tables tables;
    switch (modules_open(unwinder->modules, pc, u->own_unloads, &tables)) {
    case MODULES_NONE:
        if (u->count == 0) /* the leaf: it is running */
            atomic_store_explicit(unwinder->generated, pc, memory_order_relaxed);
        return (struct rule){.cfa_kind = RULE_GENERATED};
    case MODULES_CHANGING:
        return (struct rule){.cfa_kind = RULE_CHANGING};
    case MODULES_FOUND:
        break;
    }
    const struct rule rule = compute_rule(&tables, pc);
    rule_cache_store(unwinder->rules, generation, key, rule);
    modules_close(unwinder->modules, &tables);
    return rule;
}

static bool canonical_frame_address(struct frame *frame, struct rule rule, uintptr_t *cfa) {
    const uintptr_t offset = (uintptr_t)(intptr_t)rule.cfa_offset;
    uintptr_t saved;
    uintptr_t above;
    switch (rule.cfa_kind) {
    case RULE_SP:
        *cfa = frame->sp + offset;
        return true;
    case RULE_AT_SP:
        return read_stack(frame, frame->sp + offset, cfa);
    case RULE_AT_SP_8:
        *cfa = read_stack(frame, frame->sp + offset, &saved) ? saved + 8 : 0;
        return *cfa != 0;
    case RULE_FP:
        *cfa = frame->fp + offset;
        return frame->fp_known;
    case RULE_AT_FP:
        return frame->fp_known && read_stack(frame, frame->fp + offset, cfa);
    case RULE_AT_FP_8:
    case RULE_AT_FP_16:
        above = rule.cfa_kind == RULE_AT_FP_8 ? 8 : 16;
        *cfa = frame->fp_known && read_stack(frame, frame->fp + offset, &saved) ? saved + above : 0;
        return *cfa != 0;
    default:
        return false;
    }
}

static bool load_fp(struct frame *frame, uintptr_t address) {
    frame->fp_known = read_stack(frame, address, &frame->fp);
    return frame->fp_known;
}

static bool restore_fp(struct frame *frame, struct rule rule, uintptr_t cfa) {
    const uintptr_t offset = (uintptr_t)(intptr_t)rule.fp_offset;
    switch (rule.fp_kind) {
    case FP_SAME:
        return true;
    case FP_AT_CFA:
        /* beyond the readable part of the red zone: popped already, so still in the register */
        return cfa + offset < frame->stack.low || load_fp(frame, cfa + offset);
    case FP_AT_FP:
        return frame->fp_known && load_fp(frame, frame->fp + offset);
    default:
        frame->fp_known = false;
        return true;
    }
}

enum step { STEP_ON, STEP_END, STEP_LOST };

/* Every frame is above the one before, but for that of a leaf, which may have none. */
static bool is_frame_above(const struct frame *frame, struct rule rule, uintptr_t cfa) {
    return cfa > frame->sp || (cfa == frame->sp && !rule_return_offset(rule));
}

static bool find_return_address(struct frame *frame, struct rule rule, uintptr_t cfa,
                                uintptr_t *address) {
    const int offset = rule_return_offset(rule);
    if (offset)
        return read_stack(frame, cfa + (uintptr_t)(intptr_t)offset, address);
    *address = frame->link;
    return frame->link != 0;
}

static enum step step_by_rule(struct frame *frame, struct rule rule) {
    uintptr_t cfa;
    uintptr_t return_address;
    if (!canonical_frame_address(frame, rule, &cfa) || !is_frame_above(frame, rule, cfa))
        return STEP_LOST;
    if (!find_return_address(frame, rule, cfa, &return_address) || !restore_fp(frame, rule, cfa))
        return STEP_LOST;
    if (return_address == 0)
        return STEP_END;
    frame->is_caller = true;
    frame->is_checked = false;
    frame->link = 0;
    frame->pc = arch_return_address(return_address) - 1;
    frame->sp = cfa;
    frame->stack.low = cfa;
    return STEP_ON;
}

/* Out of a signal handler: all registers are in the signal frame; the stack may be another. */
static enum step step_by_signal(struct unwind *u, struct frame *frame) {
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t fp;
    uintptr_t link = 0;
    if (!ARCH_PUSHED_RETURN && !read_stack(frame, frame->sp + SIGNAL_FRAME_LINK, &link))
        return STEP_LOST;
    if (!read_stack(frame, frame->sp + SIGNAL_FRAME_PC, &pc) ||
        !read_stack(frame, frame->sp + SIGNAL_FRAME_SP, &sp) ||
        !read_stack(frame, frame->sp + SIGNAL_FRAME_FP, &fp))
        return STEP_LOST;
    const struct stack_view next = view_of(u, sp);
    const bool same_stack = next.high == frame->stack.high;
    if (same_stack && sp <= frame->sp)
        return STEP_LOST;
    *frame =
        (struct frame){.pc = pc, .sp = sp, .fp = fp, .fp_known = true, .link = link, .stack = next};
    return pc ? STEP_ON : STEP_END;
}

/* --- generated code --- */

static bool is_on_stack(const struct unwind *u, uintptr_t address) {
    return within(u->thread_stack, address) || within(u->signal_stack, address);
}

static bool is_near(uintptr_t a, uintptr_t b) {
    return (a > b ? a - b : b - a) <= arch_call_reach;
}

/* Whether `address` may be in code that calls generated code at `from`, or is called by it: in an
 * object, or near enough to be called, or near code that was seen running. */
static bool may_be_code(const struct unwinder *unwinder, const struct unwind *u, uintptr_t from,
                        uintptr_t address) {
    if (address < LOWEST_CODE || is_on_stack(u, address))
        return false;
    return is_near(address, from) ||
           is_near(address, atomic_load_explicit(unwinder->generated, memory_order_relaxed)) ||
           modules_span(unwinder->modules, address - 1);
}

/* Whether `address` may be where generated code at `from` returns to: behind a call instruction. */
static bool is_return_address(const struct unwinder *unwinder, const struct unwind *u,
                              uintptr_t from, uintptr_t address) {
    return may_be_code(unwinder, u, from, address) &&
           memory_is_readable(address - ARCH_CALL_BYTES) && memory_is_readable(address - 1) &&
           arch_follows_call(address, address - ARCH_CALL_BYTES);
}

/* Goes to the caller at `address`, whose frame begins at `sp`. */
static enum step return_to(const struct unwinder *unwinder, const struct unwind *u,
                           struct frame *frame, uintptr_t address, uintptr_t sp, uintptr_t fp) {
    address = arch_return_address(address);
    if (!is_return_address(unwinder, u, frame->pc, address))
        return STEP_LOST;
    frame->is_caller = true;
    frame->is_checked = true;
    frame->link = 0;
    frame->pc = address - 1;
    frame->sp = sp;
    frame->stack.low = sp;
    frame->fp = fp;
    return STEP_ON;
}

/* Takes the return address at `slot`; the caller's frame begins above it. */
static enum step return_through(const struct unwinder *unwinder, const struct unwind *u,
                                struct frame *frame, uintptr_t slot, uintptr_t fp) {
    uintptr_t address;
    if (!read_stack(frame, slot, &address))
        return STEP_LOST;
    return return_to(unwinder, u, frame, address, slot + sizeof address, fp);
}

/* Whether `pc` is at the first instructions of a function that keeps a frame pointer. */
static bool is_entry(uintptr_t pc) {
    return memory_is_readable(pc) && memory_is_readable(pc + ARCH_ENTRY_BYTES - 1) &&
           arch_is_entry((const uint8_t *)pc);
}

/* A call that the program's signal handler put in: the top of the stack says where the code was
 * interrupted, which is behind no call (Go preempts goroutines so, mostly in the tick in which our
 * signal comes, too). */
static enum step return_to_interrupted(const struct unwinder *unwinder, const struct unwind *u,
                                       struct frame *frame, uintptr_t top) {
    if (!is_entry(frame->pc) || !may_be_code(unwinder, u, frame->pc, top))
        return STEP_LOST;
    frame->pc = top;
    frame->sp += 8;
    frame->stack.low = lowest_readable(frame->sp);
    return STEP_ON;
}

/* Generated code keeps frame pointers, but for leaves without a frame, and the first and the last
 * instructions of the others: there the return address is in the link register or on top of the
 * stack, or right above the caller's frame pointer that was just pushed. */
static enum step step_out_of_leaf(const struct unwinder *unwinder, const struct unwind *u,
                                  struct frame *frame) {
    uintptr_t top;
    if (frame->is_caller)
        return STEP_LOST;
    if (frame->link && return_to(unwinder, u, frame, frame->link, frame->sp, frame->fp) == STEP_ON)
        return STEP_ON;
    if (!read_stack(frame, frame->sp, &top))
        return STEP_LOST;
    if (return_through(unwinder, u, frame, frame->sp, frame->fp) == STEP_ON)
        return STEP_ON;
    if (top == frame->fp && frame->fp != frame->sp)
        return return_through(unwinder, u, frame, frame->sp + 8, frame->fp);
    return return_to_interrupted(unwinder, u, frame, top);
}

/* Goes over to the stack that fp points to. One of the two is known: on it the walk only goes up,
 * and on the other the next frame must be in its place, too. */
static bool change_stack(struct unwind *u, struct frame *frame) {
    uintptr_t next;
    if (frame->stack.high != UINTPTR_MAX)
        u->left_at = frame->sp;
    else if (!is_on_stack(u, frame->fp) || frame->fp < u->left_at)
        return false;
    frame->stack = view_of(u, frame->fp);
    if (frame->stack.high != UINTPTR_MAX)
        return true;
    return read_stack(frame, frame->fp, &next) &&
           (stack_end_is_marked(next) || next - frame->fp < LARGEST_FRAME);
}

/* Whether fp leads to a frame, on this stack or on another. Go runs C, its scheduler and its
 * collector on the thread's stack, and leaves the goroutine's frame in fp. */
static bool go_to_frame_at_fp(struct unwind *u, struct frame *frame) {
    const bool is_above = frame->fp >= frame->sp && frame->fp < frame->stack.high;
    const bool is_here = frame->stack.high != UINTPTR_MAX || !is_on_stack(u, frame->fp);
    return frame->fp_known && ((is_above && is_here) || change_stack(u, frame));
}

/* Go's crosscall2 pushes its frame twice: one that ends a word above leaves a return address no
 * room, and the second is meant. */
static bool read_saved_fp(struct frame *frame, uintptr_t *fp) {
    if (!read_stack(frame, frame->fp, fp))
        return false;
    if (*fp != frame->fp + sizeof *fp)
        return true;
    frame->fp = *fp;
    return read_stack(frame, frame->fp, fp);
}

static enum step step_by_frame_pointer(const struct unwinder *unwinder, struct unwind *u,
                                       struct frame *frame) {
    uintptr_t fp;
    if (step_out_of_leaf(unwinder, u, frame) == STEP_ON)
        return STEP_ON;
    if (frame->is_caller && frame->fp_known && stack_end_is_marked(frame->fp))
        return STEP_END;
    if (!go_to_frame_at_fp(u, frame) || !read_saved_fp(frame, &fp))
        return STEP_LOST;
    if (return_through(unwinder, u, frame, frame->fp + 8, fp) == STEP_ON)
        return STEP_ON;
    return stack_end_is_marked(fp) ? STEP_END : STEP_LOST;
}

/* A caller's frame is believed only if the code there has just called: stale or overwritten stack
 * slots (an exception being resumed rewrites return addresses) must not become frames. Trampolines
 * and outermost frames are returned to without a call. */
static bool is_credible(const struct unwinder *unwinder, const struct unwind *u,
                        const struct frame *frame, struct rule rule) {
    if (!frame->is_caller || rule.cfa_kind == RULE_SIGNAL || rule.cfa_kind == RULE_END)
        return true;
    if (rule.cfa_kind == RULE_GENERATED)
        return frame->is_checked || is_return_address(unwinder, u, frame->pc, frame->pc + 1);
    return rule.after_call;
}

static bool list(const struct unwinder *unwinder, struct unwind *u, uintptr_t pc) {
    if (unwinder_is_own(unwinder, pc))
        return true;
    if (u->count == u->max)
        return false;
    u->frames[u->count++] = pc;
    return true;
}

/* --- the walk --- */

/* The rule of nearly every frame: CFA = stack pointer + constant, the frame pointer unchanged or
 * saved below the CFA, the return address saved there, too, and, in a caller, a call before it. */
static bool is_plain(uint64_t word, bool is_caller) {
    return (word >> PACKED_KIND_SHIFT & 15) == RULE_SP && packed_return_offset(word) &&
           (word >> PACKED_FP_SHIFT & 3) <= FP_AT_CFA &&
           (word & PACKED_AFTER_CALL) >= (uint64_t)is_caller;
}
_Static_assert(FP_SAME == 0 && FP_AT_CFA == 1, "is_plain() compares them");

/* Goes on as long as rules are cached and plain, and reads stay inside the view; leaves the rest,
 * and every decision about it, to the general way. */
static void walk_plain_frames(const struct unwinder *unwinder, struct unwind *u,
                              struct frame *frame) {
    const uint64_t generation = rule_cache_generation(unwinder->rules);
    struct rule_key key = key_of(frame);
    uintptr_t sp = frame->sp;
    uintptr_t fp = frame->fp;
    bool fp_known = frame->fp_known;
    uint32_t count = u->count;
    uintptr_t low = frame->stack.low;
    const uintptr_t high = frame->stack.high;
    const uintptr_t moved_by = frame->stack.moved_by;
    while (count < u->max) {
        const uint64_t word = rule_cache_word(unwinder->rules, key);
        const uintptr_t cfa = sp + (word & PACKED_CFA_MASK);
        const uintptr_t slot = cfa + (uintptr_t)packed_return_offset(word);
        if (!is_plain(word, !key.leaf) || !rule_word_is_for(word, generation, key) ||
            (word & PACKED_CFA_SIGN) || slot < sp || cfa > high || (cfa & 7))
            break;
        if (word >> PACKED_FP_SHIFT & 1) { /* FP_AT_CFA */
            const uintptr_t saved = cfa + (uintptr_t)packed_fp_offset(word);
            if (saved < low || saved > high - 8)
                break;
            fp = *(const volatile uintptr_t *)(saved + moved_by);
            fp_known = true;
        }
        const uintptr_t return_address = *(const volatile uintptr_t *)(slot + moved_by);
        if (return_address == 0)
            break;
        const uintptr_t pc = key.address - !key.leaf;
        u->frames[count] = pc;
        count += !unwinder_is_own(unwinder, pc);
        key = (struct rule_key){arch_return_address(return_address), false};
        sp = low = cfa;
    }
    u->count = count;
    if (sp == frame->sp) /* not one step */
        return;
    *frame = (struct frame){.is_caller = true,
                            .fp_known = fp_known,
                            .pc = key.address - 1,
                            .sp = sp,
                            .fp = fp,
                            .stack = frame->stack};
    frame->stack.low = low;
}

static enum unwind_end end_of_incredible(const struct unwinder *unwinder, const struct unwind *u,
                                         const struct frame *frame, struct rule rule) {
    if (rule.cfa_kind == RULE_CHANGING)
        return UNWIND_CHANGING;
    const bool is_laid_out =
        u->foreign_stack && frame->is_caller &&
        stack_end_is_laid_out(unwinder->modules, frame->pc + 1, u->own_unloads);
    return is_laid_out ? UNWIND_COMPLETE : UNWIND_TRUNCATED;
}

static struct frame first_frame(struct unwind *u, const uint64_t registers[REGISTER_COUNT]) {
    return (struct frame){
        .is_caller = u->from_caller,
        .pc = registers[REGISTER_PC] - u->from_caller,
        .sp = registers[REGISTER_SP],
        .fp = registers[REGISTER_FP],
        .fp_known = !u->fp_unknown,
        .link = u->from_caller ? 0 : arch_link_register(registers),
        .stack = view_of(u, registers[REGISTER_SP]),
    };
}

/* By a rule that is no end. */
static enum step step_by(const struct unwinder *unwinder, struct unwind *u, struct frame *frame,
                         struct rule rule) {
    if (rule.cfa_kind >= RULE_SP)
        return step_by_rule(frame, rule);
    if (rule.cfa_kind == RULE_GENERATED)
        return step_by_frame_pointer(unwinder, u, frame);
    if (rule.cfa_kind != RULE_SIGNAL)
        return STEP_LOST;
    u->crossed_signal = true;
    return step_by_signal(u, frame);
}

static enum unwind_end walk_on(const struct unwinder *unwinder, struct unwind *u,
                               struct frame *frame) {
    if (u->cold)
        rule_cache_touch(unwinder->rules, key_of(frame));
    /* bounded: sp grows at each step, and own frames, which are not listed, are few */
    for (uint32_t steps = 0; steps <= u->max + 16; steps++) {
        if (frame->stack.high != UINTPTR_MAX)
            walk_plain_frames(unwinder, u, frame);
        const struct rule rule = rule_for(unwinder, u, frame);
        if (!is_credible(unwinder, u, frame, rule))
            return end_of_incredible(unwinder, u, frame, rule);
        if (!list(unwinder, u, frame->pc))
            return UNWIND_DEPTH;
        if (rule.cfa_kind == RULE_END)
            return UNWIND_COMPLETE;
        if (rule.cfa_kind == RULE_EXPRESSION)
            return UNWIND_EXPRESSION;
        if (rule.cfa_kind == RULE_CHANGING)
            return UNWIND_CHANGING;
        const enum step step = step_by(unwinder, u, frame, rule);
        if (step != STEP_ON)
            return step == STEP_END ? UNWIND_COMPLETE : UNWIND_TRUNCATED;
        if (u->cold)
            rule_cache_touch(unwinder->rules, key_of(frame));
    }
    return UNWIND_DEPTH;
}

enum unwind_end unwind_walk(const struct unwinder *unwinder,
                            const uint64_t registers[REGISTER_COUNT], struct unwind *u) {
    u->count = 0;
    u->foreign_stack = false;
    u->crossed_signal = false;
    u->left_at = 0;
    struct frame frame = first_frame(u, registers);
    const enum unwind_end end = walk_on(unwinder, u, &frame);
    u->ended_pc = frame.pc;
    u->ended_sp = frame.sp;
    return end;
}
