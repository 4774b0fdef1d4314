#include "unwind.h"

#include "arch_code.h"
#include "arch_instruction.h"
#include "arch_memory.h"
#include "code_rule.h"
#include "return_address.h"
#include "stack_end.h"
#include "undescribed.h"
#include "walk_frame.h"

enum { GENERATED_CODE_BYTES = 16 << 10 }; /* a gap of so many bytes or more is not one function */

/* --- rules --- */

/* Finds a rule for code that no table describes. */
static struct rule rule_of_code(const struct cfi_tables *tables, uintptr_t pc, bool is_caller) {
    const struct readable_range code = cfi_code_around(tables, pc);
    const struct code_view view = {.low = code.start, .high = code.end};
    struct rule rule = code_rule(&view, pc + is_caller);
    rule.after_call = return_address_follows_call(tables, pc + 1);
    return rule;
}

/* Returns true if a handler returns to `pc`, or if the code there is about to end a handler: the
 * trampoline that no table describes is at `pc`, or one instruction before. */
static bool is_in_signal_trampoline(const struct cfi_tables *tables, uintptr_t pc) {
    const struct readable_range code = cfi_code_around(tables, pc);
    for (uintptr_t at = pc - ARCH_CALL_BYTES; at <= pc; at += ARCH_CALL_BYTES)
        if (at >= code.start && at < code.end &&
            arch_is_signal_return((const uint8_t *)at, code.end - at))
            return true;
    return false;
}

static struct rule compute_rule(const struct cfi_tables *tables, uintptr_t pc, bool is_caller) {
    struct rule rule = {.cfa_kind = RULE_NONE};
    if (!ARCH_PUSHED_RETURN && is_in_signal_trampoline(tables, pc + is_caller))
        return (struct rule){.cfa_kind = RULE_SIGNAL};
    if (tables->header)
        rule = cfi_rule(tables, pc);
    if (rule.cfa_kind == RULE_NONE && tables->header &&
        cfi_is_gap(tables, pc, GENERATED_CODE_BYTES))
        return (struct rule){.cfa_kind = RULE_GENERATED};
    if (rule.cfa_kind == RULE_NONE)
        return rule_of_code(tables, pc, is_caller);
    rule.after_call = return_address_follows_call(tables, pc + 1);
    return rule;
}

static struct rule_key key_of(const struct frame *frame) {
    return (struct rule_key){frame->pc + frame->is_caller, !frame->is_caller};
}

/* Finds a rule for code made at run time: its compiler has registered tables for it, or the code
 * keeps frame pointers. */
static struct rule rule_outside_objects(const struct unwinder *unwinder, uint64_t generation,
                                        struct rule_key key, uintptr_t pc) {
    struct rule rule;
    if (unwinder->registered &&
        registered_tables_rule(unwinder->registered, unwinder->rules, generation, key, pc, &rule))
        return rule;
    return (struct rule){.cfa_kind = RULE_GENERATED};
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
        if (u->count == 0) /* the leaf is running, so it is credible */
            atomic_store_explicit(unwinder->generated, pc, memory_order_relaxed);
        return rule_outside_objects(unwinder, generation, key, pc);
    case MODULES_CHANGING:
        return (struct rule){.cfa_kind = RULE_CHANGING};
    case MODULES_FOUND:
        break;
    }
    const bool is_end = frame->is_caller && stack_end_is_greenlets(unwinder->modules, &tables, pc);
    const struct rule rule =
        is_end ? (struct rule){.cfa_kind = RULE_END} : compute_rule(&tables, pc, frame->is_caller);
    rule_cache_store(unwinder->rules, generation, key, rule);
    modules_close(unwinder->modules, &tables);
    return rule;
}

/* Steps out of a signal handler: the signal frame has all registers; the interrupted code may run
 * on another stack. */
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

/* Returns true if a caller's frame is believed: only if the code there has just called, because
 * stale or overwritten stack slots must not become frames (an exception that is resumed rewrites
 * return addresses). Trampolines and outermost frames need no call. */
static bool is_credible(const struct unwinder *unwinder, const struct unwind *u,
                        const struct frame *frame, struct rule rule) {
    if (!frame->is_caller || rule.cfa_kind == RULE_SIGNAL || rule.cfa_kind == RULE_END)
        return true;
    if (rule.cfa_kind == RULE_GENERATED)
        return frame->is_checked ||
               return_address_is_credible(unwinder, u, frame->pc, frame->pc + 1);
    return rule.after_call;
}

/* --- the walk --- */

/* Lists the bits in which all plain rules are equal, and their values: CFA = stack pointer or frame
 * pointer + a constant that is not negative, frame pointer unchanged or saved below the CFA, return
 * address saved below the CFA, too, and after a call. */
enum {
    PLAIN_RETURN = !ARCH_PUSHED_RETURN << PACKED_RETURN_SHIFT,
    PLAIN_BITS = 7 << (PACKED_KIND_SHIFT + 1) | 2 << PACKED_FP_SHIFT | PACKED_CFA_SIGN |
                 PACKED_AFTER_CALL | PLAIN_RETURN,
    PLAIN_VALUES = RULE_SP >> 1 << (PACKED_KIND_SHIFT + 1) | PACKED_AFTER_CALL | PLAIN_RETURN,
};
_Static_assert(RULE_SP % 2 == 0 && RULE_FP == RULE_SP + 1 && FP_SAME == 0 && FP_AT_CFA == 1 &&
                   PACKED_AFTER_CALL == 1,
               "is_plain() compares all of them at once");

/* Returns true for the rule of nearly every frame. In a leaf, no call need precede the pc. */
static bool is_plain(uint64_t word, bool leaf) {
    return ((word | leaf) & PLAIN_BITS) == PLAIN_VALUES;
}

/* Returns true if the CFA of a plain rule is the frame pointer + constant. */
static bool is_plain_by_fp(uint64_t word) {
    return word >> PACKED_KIND_SHIFT & 1;
}

/* Returns the address at which the fast loop must stop: the place where an interpreter runs next,
 * because only the general loop lists an interpreter's functions, or else the end of the stack. */
static uintptr_t plain_end(const struct unwind *u, const struct frame *frame) {
    const uintptr_t room = frame->stack.high - frame->sp;
    const uintptr_t at = u->interpreter ? u->interpreter->at : 0;
    return at - frame->sp < room ? at : frame->stack.high;
}

/* Walks as long as rules are cached and plain, and reads stay inside the view; leaves all other
 * frames to the general loop. */
static void walk_plain_frames(const struct unwinder *unwinder, struct unwind *u,
                              struct frame *frame) {
    const uint64_t generation = rule_cache_generation(unwinder->rules);
    struct rule_key key = key_of(frame);
    uintptr_t sp = frame->sp;
    uintptr_t fp = frame->fp_known ? frame->fp : UINTPTR_MAX;
    uint32_t count = u->count;
    uintptr_t low = frame->stack.low;
    const uintptr_t high = plain_end(u, frame);
    const uintptr_t moved_by = frame->stack.moved_by;
    /* as unwinder_is_profiler(); the compiler cannot know that no frame overwrites these values */
    const uintptr_t profiler = unwinder->profiler_start;
    const uintptr_t profiler_bytes = unwinder->profiler_end - profiler;
    while (count < u->max) {
        const uint64_t word = rule_cache_word(unwinder->rules, key);
        uintptr_t base = sp;
        if (is_plain_by_fp(word)) {
            if (fp >= high) /* among others, an unknown frame pointer */
                break;
            base = fp;
        }
        const uintptr_t cfa = base + (word & PACKED_CFA_MASK);
        const uintptr_t slot = cfa + (uintptr_t)packed_return_offset(word);
        if (!is_plain(word, key.leaf) || !rule_word_has_tag(word, generation, key) || slot < sp ||
            cfa > high || (cfa & 7))
            break;
        if (word >> PACKED_FP_SHIFT & 1) { /* FP_AT_CFA */
            const uintptr_t saved = cfa + (uintptr_t)packed_fp_offset(word);
            if (saved < low || saved > high - 8)
                break;
            fp = *(const volatile uintptr_t *)(saved + moved_by);
        }
        const uintptr_t return_address = *(const volatile uintptr_t *)(slot + moved_by);
        if (return_address == 0)
            break;
        const uintptr_t pc = key.address - !key.leaf;
        u->frames[count] = pc;
        count += pc - profiler >= profiler_bytes;
        key = (struct rule_key){arch_return_address(return_address), false};
        sp = low = cfa;
    }
    u->count = count;
    if (sp == frame->sp) /* two frames at one address would not be a step */
        return;
    *frame = (struct frame){.is_caller = true,
                            .fp_known = fp != UINTPTR_MAX,
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

/* Takes one step by a rule other than RULE_END. */
static enum step step_by(const struct unwinder *unwinder, struct unwind *u, struct frame *frame,
                         struct rule rule) {
    if (rule.cfa_kind >= RULE_CODE_SP)
        return step_out_of_object(unwinder, u, frame, rule);
    if (rule.cfa_kind >= RULE_SP)
        return step_by_rule(frame, rule);
    if (rule.cfa_kind == RULE_GENERATED)
        return step_out_of_generated(unwinder, u, frame);
    if (rule.cfa_kind != RULE_SIGNAL)
        return STEP_LOST;
    u->crossed_signal = true;
    return step_by_signal(u, frame);
}

/* --- interpreters --- */

/* Lists an interpreter's functions in place of the native frame listed last, which reaches from
 * `sp` to `next_sp`, if the interpreter runs in that frame. */
static void list_interpreted(struct unwind *u, uintptr_t sp, uintptr_t next_sp) {
    struct interpreter_frames *const interpreter = u->interpreter;
    const uint32_t count = u->count;
    if (!interpreter || interpreter->at - sp >= next_sp - sp || count == 0)
        return;
    const uint64_t native = u->frames[--u->count];
    interpreter->list(interpreter, u);
    /* lists the native frame again: no function was listed, but the frame's place may have been
     * written to */
    if (u->count < count)
        u->frames[u->count++] = native;
}

/* Lists the interpreter's functions whose native frames are unknown. If the walk will continue
 * later, their place is recorded. */
static void list_remaining(struct unwind *u, bool goes_on) {
    struct interpreter_frames *const interpreter = u->interpreter;
    while (interpreter && interpreter->at && u->count < u->max) {
        if (goes_on)
            u->frames[u->count++] = frame_place(interpreter->at);
        interpreter->list(interpreter, u);
    }
}

static enum unwind_end unwind_walk_on(const struct unwinder *unwinder, struct unwind *u,
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
        if (!unwinder_is_profiler(unwinder, frame->pc)) {
            if (u->count == u->max)
                return UNWIND_DEPTH;
            u->frames[u->count++] = frame->pc;
        }
        if (rule.cfa_kind == RULE_END)
            return UNWIND_COMPLETE;
        if (rule.cfa_kind == RULE_EXPRESSION)
            return UNWIND_EXPRESSION;
        if (rule.cfa_kind == RULE_CHANGING)
            return UNWIND_CHANGING;
        const uintptr_t sp = frame->sp;
        const enum step step = step_by(unwinder, u, frame, rule);
        if (step != STEP_ON)
            return step == STEP_END ? UNWIND_COMPLETE : UNWIND_TRUNCATED;
        list_interpreted(u, sp, frame->sp);
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
    u->by_frame_pointer = false;
    u->by_record_alone = false;
    u->left_at = 0;
    struct frame frame = first_frame(u, registers);
    const enum unwind_end end = unwind_walk_on(unwinder, u, &frame);
    u->ended_pc = frame.pc;
    u->ended_sp = frame.sp;
    if (end == UNWIND_TRUNCATED || end == UNWIND_EXPRESSION)
        list_remaining(u, end == UNWIND_EXPRESSION);
    return end;
}
