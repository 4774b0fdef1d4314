/* Steps from one frame of a walk to its caller's, by a rule.
 *
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_WALK_FRAME_H
#define OTELPROF_WALK_FRAME_H

#include "arch_code.h"
#include "cfi.h"
#include "walk_view.h"

#include <stdbool.h>
#include <stdint.h>

/* Describes a frame that is being walked. `pc` is the address to search for: the exact pc of a leaf
 * or interrupted frame; in a caller the return address - 1, which lies in the call instruction. */
struct frame {
    bool is_caller;
    bool is_checked; /* a call is known to precede the pc */
    bool fp_known;
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t fp;
    uintptr_t link; /* the value of the link register, while it belongs to the leaf; 0: none */
    struct stack_view stack;
};

static inline bool read_stack(struct frame *frame, uintptr_t address, uintptr_t *value) {
    return stack_view_read(&frame->stack, address, value);
}

enum step { STEP_ON, STEP_END, STEP_LOST };

static inline bool canonical_frame_address(struct frame *frame, struct rule rule, uintptr_t *cfa) {
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

static inline bool load_fp(struct frame *frame, uintptr_t address) {
    frame->fp_known = read_stack(frame, address, &frame->fp);
    return frame->fp_known;
}

static inline bool restore_fp(struct frame *frame, struct rule rule, uintptr_t cfa) {
    const uintptr_t offset = (uintptr_t)(intptr_t)rule.fp_offset;
    switch (rule.fp_kind) {
    case FP_SAME:
        return true;
    case FP_AT_CFA:
        /* a place below the readable red zone means that the frame pointer was just popped: the
         * register has the saved value already */
        return cfa + offset < frame->stack.low || load_fp(frame, cfa + offset);
    case FP_AT_FP:
        return frame->fp_known && load_fp(frame, frame->fp + offset);
    default:
        frame->fp_known = false;
        return true;
    }
}

/* Returns true if a caller's frame lies above that of its callee. Only a leaf may have no frame. */
static inline bool is_frame_above(const struct frame *frame, struct rule rule, uintptr_t cfa) {
    return cfa > frame->sp || (cfa == frame->sp && !rule_return_offset(rule));
}

static inline bool find_return_address(struct frame *frame, struct rule rule, uintptr_t cfa,
                                       uintptr_t *address) {
    const int offset = rule_return_offset(rule);
    if (offset)
        return read_stack(frame, cfa + (uintptr_t)(intptr_t)offset, address);
    *address = frame->link;
    return frame->link != 0;
}

static inline void go_to_caller(struct frame *frame, uintptr_t return_address, uintptr_t sp) {
    frame->is_caller = true;
    frame->is_checked = false;
    frame->link = 0;
    frame->pc = return_address - 1;
    frame->sp = sp;
    frame->stack.low = sp;
}

static inline enum step step_by_rule(struct frame *frame, struct rule rule) {
    uintptr_t cfa;
    uintptr_t return_address;
    if (!canonical_frame_address(frame, rule, &cfa) || !is_frame_above(frame, rule, cfa))
        return STEP_LOST;
    if (!find_return_address(frame, rule, cfa, &return_address) || !restore_fp(frame, rule, cfa))
        return STEP_LOST;
    if (return_address == 0)
        return STEP_END;
    go_to_caller(frame, arch_return_address(return_address), cfa);
    return STEP_ON;
}

#endif
