/* Derives a rule for code that no table describes from its instructions.
 *
 * When compiled code returns, its stack pointer is at the return address; and each instruction of a
 * function always runs at the same distance from that address. So a path is followed from the pc to
 * a return, while changes of the stack and frame pointers are added up: the sum is the rule.
 * Branches are followed both ways. Calls are assumed to return; because some never do, paths
 * without calls are followed first, and a path that runs into another function is dropped. So rules
 * are found where there is no frame record: in a function's prologue and epilogue, and in a leaf.
 *
 * The result is a guess: the walker must check the frame that it leads to (unwind.c).
 */
#ifndef OTELPROF_CODE_RULE_H
#define OTELPROF_CODE_RULE_H

#include "cfi.h"

#include <stdbool.h>
#include <stdint.h>

/* Bounds the code that may be read: from `low` to `high`; if `is_asked`, only the parts that the
 * kernel reports as readable. */
struct code_view {
    uintptr_t low;
    uintptr_t high;
    bool is_asked;
};

/* Returns the rule at `pc`, the next instruction of the frame (in a caller, its return address):
 * RULE_CODE_SP or RULE_CODE_FP; RULE_RECORD: no rule was found. Cost: some 5 ns for each of at most
 * 512 instructions. Context: any. Async-signal-safe: yes. */
struct rule code_rule(const struct code_view *view, uintptr_t pc);

/* Returns true if code_rule() has found no rule. */
static inline bool rule_is_of_record(struct rule rule) {
    return rule.cfa_kind == RULE_RECORD;
}
/* Returns true if code_rule() has followed every path to its end, and found none that returns. */
static inline bool rule_never_returns(struct rule rule) {
    return rule_is_of_record(rule) && rule.fp_kind == FP_LOST;
}

#endif
