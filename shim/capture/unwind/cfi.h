/* Finds one unwind rule in the bytes of .eh_frame.
 *
 * The compiler's call frame information describes, for each pc, where the caller's registers are.
 * Code in practice needs very little of all that DWARF can express: the canonical frame address
 * (CFA) is the stack pointer or the frame pointer plus a constant, or a value saved in the frame of
 * a function that realigned its stack; the return address and the caller's frame pointer are still
 * in their registers, or saved at constant places. So a rule fits into 64 bits, which the rule
 * cache stores and the walker executes. Expressions are evaluated symbolically as "register +
 * constant, perhaps dereferenced" with the pc as a known constant, which covers PLT stubs,
 * realigned frames and libc's signal trampoline. A rule that does not fit is RULE_EXPRESSION:
 * libunwind finishes such a walk on the helper thread.
 *
 * Sources: LSB 5.0 core, chapter 10.6 (.eh_frame, .eh_frame_hdr); DWARF 5, section 6.4.
 */
#ifndef OTELPROF_CFI_H
#define OTELPROF_CFI_H

#include "arch_code.h"
#include "object_segments.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cfa_kind {
    RULE_NONE,       /* no table describes this pc */
    RULE_EXPRESSION, /* a table describes the pc, but no rule can express it */
    RULE_END,        /* the outermost frame: it has no return address */
    RULE_SIGNAL,     /* signal trampoline: registers are in the signal frame */
    RULE_GENERATED,  /* code made at run or build time, which keeps frame pointers; see unwind.c */
    RULE_CHANGING,   /* not known at present: a library is being unloaded */
    RULE_SP,         /* CFA = stack pointer + cfa_offset */
    RULE_FP,         /* CFA = frame pointer + cfa_offset */
    RULE_AT_SP,      /* CFA = value at stack pointer + cfa_offset */
    RULE_AT_FP,      /* CFA = value at frame pointer + cfa_offset */
    RULE_AT_SP_8,    /* CFA = value at stack pointer + cfa_offset, plus 8 (a saved stack pointer) */
    RULE_AT_FP_8,    /* CFA = value at frame pointer + cfa_offset, plus 8 */
    RULE_AT_FP_16,   /* CFA = value at frame pointer + cfa_offset, plus 16 (a saved frame pointer,
                        maybe of another stack) */
    RULE_CODE_SP,    /* as RULE_SP, found in the instructions: code_rule.h */
    RULE_CODE_FP,    /* as RULE_FP, found in the instructions */
    /* code of an object that no table or instruction explains: it may have a frame record */
    RULE_RECORD,
};

/* Lists where the caller's frame pointer may be. */
enum fp_kind {
    FP_SAME,   /* still in its register, because the frame has not changed it */
    FP_AT_CFA, /* saved at CFA + fp_offset */
    FP_AT_FP,  /* saved at frame pointer + fp_offset */
    FP_LOST,   /* not recoverable: a walk cannot find a caller that needs the frame pointer */
};

struct rule {
    int32_t cfa_offset;
    int32_t fp_offset;
    int32_t return_offset; /* see rule_return_offset() */
    uint8_t cfa_kind;
    uint8_t fp_kind : 4;
    uint8_t after_call : 1; /* a call instruction ends at pc + 1; see unwind.c */
};

/* Returns the offset of the saved return address from the CFA; 0: it is still in the link register.
 * Where calls push it (ARCH_PUSHED_RETURN) the offset is a constant, which rules do not store. */
static inline int rule_return_offset(struct rule rule) {
    return ARCH_PUSHED_RETURN ? ARCH_PUSHED_RETURN : rule.return_offset;
}

/* Describes the unwind tables of one module: its PT_GNU_EH_FRAME segment, and the run-time range
 * [start, end) that the module spans. Only memory in `segments` is read; without segments (tables
 * in a buffer), only memory in the range. */
struct cfi_tables {
    uintptr_t header;
    uintptr_t start;
    uintptr_t end;
    struct object_segments segments;
    bool fixed; /* the module is never unloaded: fixed_modules.h */
};

/* Returns the range that may be read around `address`. Context: any. Async-signal-safe: yes. */
static inline struct readable_range cfi_readable_around(const struct cfi_tables *tables,
                                                        uintptr_t address) {
    if (tables->segments.count)
        return object_readable_around(&tables->segments, address);
    return (struct readable_range){tables->start, tables->end};
}

/* Returns the range of code that may be read around `address`. */
static inline struct readable_range cfi_code_around(const struct cfi_tables *tables,
                                                    uintptr_t address) {
    if (tables->segments.count)
        return object_part_around(&tables->segments, address, PF_R | PF_X);
    return (struct readable_range){tables->start, tables->end};
}

/* Returns the rule for `pc` (for a caller's frame: return address - 1). Reads only memory of the
 * module. Cost: about 0.3 to 1 µs. Context: any. Async-signal-safe: yes. */
struct rule cfi_rule(const struct cfi_tables *tables, uintptr_t pc);

/* Returns true if an entry begins at exactly `pc`. Context: any. Async-signal-safe: yes. */
bool cfi_is_start(const struct cfi_tables *tables, uintptr_t pc);

/* Returns true if `pc` lies in a stretch of at least `bytes` that no entry describes: so long a gap
 * is code that a generator has put into the object (V8's built-ins), not one function without
 * unwind information. Context: any. Async-signal-safe: yes. */
bool cfi_is_gap(const struct cfi_tables *tables, uintptr_t pc, uintptr_t bytes);

#endif
