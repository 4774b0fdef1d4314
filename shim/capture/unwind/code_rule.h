/* A rule for code that no table describes, from its instructions.
 *
 * Compiled code leaves a function with its stack pointer at the return address, and at each of its
 * instructions the stack pointer is as far from there as at any other time that it comes by. So a
 * path is followed from the pc to a return, whatever it does but move the stack and frame pointers:
 * what they have moved by on the way is the rule. Branches are followed both ways; calls come back,
 * but for those that never do, so paths without calls are followed first, and one that runs into
 * another function is left. At a function's prologue and in its epilogue, and in a leaf that has no
 * frame record, this finds what a frame record cannot express.
 *
 * The result is a guess: the walker must check the frame that it leads to (unwind.c).
 */
#ifndef OTELPROF_CODE_RULE_H
#define OTELPROF_CODE_RULE_H

#include "cfi.h"

#include <stdbool.h>
#include <stdint.h>

/* Code that may be read: all from `low` to `high`, or, if `is_asked`, the part of it that the
 * kernel reports can be read. */
struct code_view {
    uintptr_t low;
    uintptr_t high;
    bool is_asked;
};

/* The rule at `pc`, the next instruction to be run in that frame (a caller's return address):
 * RULE_CODE_SP or RULE_CODE_FP; RULE_RECORD: none was found. Cost: some 5 ns for each of at most
 * 512 instructions. Context: any. Async-signal-safe: yes. */
struct rule code_rule(const struct code_view *view, uintptr_t pc);

/* None was found; and what may be read leads to no return. */
static inline bool rule_is_of_record(struct rule rule) {
    return rule.cfa_kind == RULE_RECORD;
}
static inline bool rule_never_returns(struct rule rule) {
    return rule_is_of_record(rule) && rule.fp_kind == FP_LOST;
}

#endif
