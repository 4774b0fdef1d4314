/* Derives a rule for code that no table describes from its instructions.
 *
 * When compiled code returns, its stack pointer is at the return address; and at each instruction
 * of a function the stack pointer is always at the same distance from there. So a path is followed
 * from the pc to a return, and only changes of the stack and frame pointers are tracked: their sum
 * on the way is the rule. Branches are followed both ways. Calls are assumed to return; because
 * some never do, paths without calls are followed first, and a path that runs into another function
 * is dropped. At a function's prologue and in its epilogue, and in a leaf that has no frame record,
 * this finds what a frame record cannot express.
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

/* Returns the rule at `pc`, the next instruction of the frame (in a caller, its return address):
 * RULE_CODE_SP or RULE_CODE_FP; RULE_RECORD: none was found. Cost: some 5 ns for each of at most
 * 512 instructions. Context: any. Async-signal-safe: yes. */
struct rule code_rule(const struct code_view *view, uintptr_t pc);

/* Returns true for a result of code_rule() that found no rule. */
static inline bool rule_is_of_record(struct rule rule) {
    return rule.cfa_kind == RULE_RECORD;
}
static inline bool rule_never_returns(struct rule rule) {
    return rule_is_of_record(rule) && rule.fp_kind == FP_LOST;
}

#endif
