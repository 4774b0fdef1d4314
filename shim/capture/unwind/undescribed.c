#include "undescribed.h"

#include "code_rule.h"
#include "return_address.h"
#include "stack_end.h"
#include "walk_view.h"

/* bounds a function's frame, in bytes; a larger frame is rejected */
enum { LARGEST_FRAME = 1 << 20 };

/* Follows the rule found in the instructions, if it leads behind a call. The call may be in any
 * code, because no generated code may have been seen yet. */
static enum step step_by_instructions(const struct unwinder *unwinder, const struct unwind *u,
                                      struct frame *frame, struct rule rule) {
    struct frame caller = *frame;
    uintptr_t cfa;
    uintptr_t address;
    if (rule_is_of_record(rule))
        return STEP_LOST;
    rule.cfa_kind = rule.cfa_kind == RULE_CODE_SP ? RULE_SP : RULE_FP;
    if (!canonical_frame_address(&caller, rule, &cfa) || !is_frame_above(&caller, rule, cfa) ||
        !find_return_address(&caller, rule, cfa, &address) || !restore_fp(&caller, rule, cfa))
        return STEP_LOST;
    address = arch_return_address(address);
    if (!return_address_is_credible(unwinder, u, address, address))
        return STEP_LOST;
    go_to_caller(&caller, address, cfa);
    caller.is_checked = true;
    *frame = caller;
    return STEP_ON;
}

/* Finds the rule of generated code, and does not cache it, because code outside of objects
 * changes. */
static struct rule rule_of_generated(const struct frame *frame) {
    const struct code_view view = {.low = 1, .high = UINTPTR_MAX / 2, .is_asked = true};
    return code_rule(&view, frame->pc + frame->is_caller);
}

/* Goes to the caller at `address`, whose frame begins at `sp`. */
static enum step return_to(const struct unwinder *unwinder, const struct unwind *u,
                           struct frame *frame, uintptr_t address, uintptr_t sp, uintptr_t fp) {
    address = arch_return_address(address);
    if (!return_address_is_credible(unwinder, u, frame->pc, address))
        return STEP_LOST;
    go_to_caller(frame, address, sp);
    frame->is_checked = true;
    frame->fp = fp;
    return STEP_ON;
}

/* Goes to the caller at the return address at `slot`; the caller's frame begins above it. */
static enum step return_through(const struct unwinder *unwinder, const struct unwind *u,
                                struct frame *frame, uintptr_t slot, uintptr_t fp) {
    uintptr_t address;
    if (!read_stack(frame, slot, &address))
        return STEP_LOST;
    return return_to(unwinder, u, frame, address, slot + sizeof address, fp);
}

/* Steps out of a call that the program's signal handler has inserted: the top of the stack holds
 * the interrupted pc, which no call precedes. Go preempts goroutines in this way, often right when
 * the profiler's signal arrives. */
static enum step return_to_interrupted(const struct unwinder *unwinder, const struct unwind *u,
                                       struct frame *frame, uintptr_t top) {
    /* the pc is at the first instructions of a function that keeps a frame pointer */
    const bool is_entry = memory_range_is_readable(frame->pc, ARCH_ENTRY_BYTES) &&
                          arch_is_entry((const uint8_t *)frame->pc);
    if (!is_entry || !return_address_is_code(unwinder, u, frame->pc, top) ||
        return_address_is_credible(unwinder, u, frame->pc, top))
        return STEP_LOST;
    frame->pc = top;
    frame->sp += 8;
    frame->stack.low = lowest_readable(frame->sp);
    return STEP_ON;
}

/* Steps out of a leaf. Generated code keeps frame pointers, except in leaves without a frame, and
 * at the first and last instructions of other functions. If the instructions give no rule there,
 * and calls push the return address, it is on top of the stack, or right above the caller's frame
 * pointer that was just pushed. A link register may have the return address of an earlier call. */
static enum step step_out_of_leaf(const struct unwinder *unwinder, const struct unwind *u,
                                  struct frame *frame) {
    uintptr_t top;
    if (frame->is_caller)
        return STEP_LOST;
    if (step_by_instructions(unwinder, u, frame, rule_of_generated(frame)) == STEP_ON)
        return STEP_ON;
    if (!ARCH_PUSHED_RETURN || !read_stack(frame, frame->sp, &top))
        return STEP_LOST;
    if (return_through(unwinder, u, frame, frame->sp, frame->fp) == STEP_ON)
        return STEP_ON;
    if (top == frame->fp && frame->fp != frame->sp)
        return return_through(unwinder, u, frame, frame->sp + 8, frame->fp);
    return return_to_interrupted(unwinder, u, frame, top);
}

/* Continues on the stack that fp points to. Either the current stack or the new one must be known.
 * On a known stack the walk must not go below the place where it left that stack; on an unknown
 * stack the next frame must be valid, too. */
static bool change_stack(struct unwind *u, struct frame *frame) {
    uintptr_t next;
    if (frame->stack.high != UINTPTR_MAX)
        u->left_at = frame->sp;
    else if (!is_on_known_stack(u, frame->fp) || frame->fp < u->left_at)
        return false;
    frame->stack = view_of(u, frame->fp);
    if (frame->stack.high != UINTPTR_MAX)
        return true;
    return read_stack(frame, frame->fp, &next) &&
           (stack_end_is_marked(next) || next - frame->fp < LARGEST_FRAME);
}

/* Goes to the frame that fp points to, on this stack or on another. Go runs C, its scheduler and
 * its collector on the thread's stack, with the goroutine's frame in fp. Returns false if fp points
 * to no frame. */
static bool go_to_frame_at_fp(struct unwind *u, struct frame *frame) {
    const bool is_above = frame->fp >= frame->sp && frame->fp < frame->stack.high;
    const bool is_here = frame->stack.high != UINTPTR_MAX || !is_on_known_stack(u, frame->fp);
    return frame->fp_known && ((is_above && is_here) || change_stack(u, frame));
}

/* Reads the saved frame pointer. Go's crosscall2 pushes its frame twice: if the saved frame pointer
 * points one word up, where no return address fits in between, the second one is read. */
static bool read_saved_fp(struct frame *frame, uintptr_t *fp) {
    if (!read_stack(frame, frame->fp, fp))
        return false;
    if (*fp != frame->fp + sizeof *fp)
        return true;
    frame->fp = *fp;
    return read_stack(frame, frame->fp, fp);
}

/* Returns true if the frame record is the last: its frame pointer is zero, and the record is on a
 * stack with known ends, or its return address is in code. The second condition excludes memory
 * that is no stack, which is mostly zero. */
static bool is_last_record(const struct unwinder *unwinder, const struct unwind *u,
                           struct frame *frame, uintptr_t fp) {
    uintptr_t address;
    return stack_end_is_marked(fp) && read_stack(frame, frame->fp + 8, &address) &&
           (frame->stack.high != UINTPTR_MAX ||
            return_address_is_code(unwinder, u, frame->pc, address));
}

static enum step step_by_frame_record(const struct unwinder *unwinder, struct unwind *u,
                                      struct frame *frame) {
    struct frame caller = *frame; /* the last record of the stack may be on another stack */
    uintptr_t fp;
    if (!go_to_frame_at_fp(u, &caller) || !read_saved_fp(&caller, &fp))
        return STEP_LOST;
    if (return_through(unwinder, u, &caller, caller.fp + 8, fp) != STEP_ON)
        return is_last_record(unwinder, u, &caller, fp) ? STEP_END : STEP_LOST;
    *frame = caller;
    return STEP_ON;
}

/* --- a saved stack pointer --- */

enum { MOST_PUSHED = 6 }; /* so many registers belong to the caller (psABI, figure 3.4) */

/* Returns the place of the first credible return address above the registers that code has pushed
 * at `sp`, at most MOST_PUSHED; 0: there is none. */
static uintptr_t return_above_pushed(const struct unwinder *unwinder, const struct unwind *u,
                                     struct frame *frame, uintptr_t sp) {
    uintptr_t address;
    for (uintptr_t slot = sp; slot <= sp + 8 * MOST_PUSHED; slot += 8)
        if (read_stack(frame, slot, &address) &&
            return_address_is_credible(unwinder, u, frame->pc, arch_return_address(address)))
            return slot;
    return 0;
}

/* Finds the caller's frame pointer among the registers from `low` to the return address at `slot`:
 * the one that points to a frame record. If there is none, the frame pointer is unknown. */
static void find_pushed_fp(const struct unwinder *unwinder, const struct unwind *u,
                           struct frame *frame, uintptr_t low, uintptr_t slot) {
    frame->fp_known = false;
    for (uintptr_t at = low; at < slot && !frame->fp_known; at += 8) {
        uintptr_t fp;
        uintptr_t address;
        frame->fp_known =
            read_stack(frame, at, &fp) && fp > slot && is_on_known_stack(u, fp) &&
            read_stack(frame, fp + 8, &address) &&
            return_address_is_credible(unwinder, u, frame->pc, arch_return_address(address));
        if (frame->fp_known)
            frame->fp = fp;
    }
}

/* Steps out of a leaf whose stack pointer points to data. Such code has saved the stack pointer in
 * that data (oneDNN's matrix products: 120 bytes up), after it has pushed the caller's registers.
 * Frame pointers are no help, because the code uses that register, too. */
static enum step step_by_saved_sp(const struct unwinder *unwinder, struct unwind *u,
                                  struct frame *frame) {
    enum { SEARCHED_BYTES = 256 };
    if (frame->is_caller || frame->stack.high != UINTPTR_MAX)
        return STEP_LOST;
    for (uintptr_t place = frame->sp; place < frame->sp + SEARCHED_BYTES; place += 8) {
        struct frame caller = *frame;
        uintptr_t sp;
        if (!read_stack(frame, place, &sp))
            return STEP_LOST;
        /* the value may be any data, and a part of a stack's range may be unmapped */
        if (sp % 8 || !is_on_known_stack(u, sp) ||
            !memory_range_is_readable(sp, 8 * (MOST_PUSHED + 1)))
            continue;
        caller.stack = view_of(u, sp);
        const uintptr_t slot = return_above_pushed(unwinder, u, &caller, sp);
        if (!slot)
            continue;
        find_pushed_fp(unwinder, u, &caller, sp, slot);
        if (return_through(unwinder, u, &caller, slot, caller.fp) != STEP_ON)
            continue;
        u->left_at = sp;
        *frame = caller;
        return STEP_ON;
    }
    return STEP_LOST;
}

static bool is_outermost(const struct frame *frame) {
    return frame->is_caller && frame->fp_known && stack_end_is_marked(frame->fp);
}

enum step step_out_of_generated(const struct unwinder *unwinder, struct unwind *u,
                                struct frame *frame) {
    u->by_frame_pointer = true;
    if (step_out_of_leaf(unwinder, u, frame) == STEP_ON)
        return STEP_ON;
    /* the code's compiler registers tables, but not for this code: fp may hold any value, 0 too */
    if (unwinder->registered && registered_tables_are_near(unwinder->registered, frame->pc))
        return frame->is_caller ? step_by_instructions(unwinder, u, frame, rule_of_generated(frame))
                                : STEP_LOST;
    if (is_outermost(frame))
        return STEP_END;
    const enum step step = step_by_frame_record(unwinder, u, frame);
    if (step != STEP_LOST)
        return step;
    return frame->is_caller ? step_by_instructions(unwinder, u, frame, rule_of_generated(frame))
                            : step_by_saved_sp(unwinder, u, frame);
}

enum step step_out_of_object(const struct unwinder *unwinder, struct unwind *u, struct frame *frame,
                             struct rule rule) {
    uintptr_t top;
    u->by_frame_pointer = true;
    if (step_by_instructions(unwinder, u, frame, rule) == STEP_ON)
        return STEP_ON;
    if (!frame->is_caller && read_stack(frame, frame->sp, &top) &&
        return_to_interrupted(unwinder, u, frame, top) == STEP_ON)
        return STEP_ON;
    if (is_outermost(frame))
        return rule_is_of_record(rule) && !rule_never_returns(rule) ? STEP_LOST : STEP_END;
    const enum step step = step_by_frame_record(unwinder, u, frame);
    u->by_record_alone |= step == STEP_ON;
    return step;
}
