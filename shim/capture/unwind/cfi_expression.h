/* Evaluates DWARF expressions symbolically: a CFI rule for a register becomes a register plus a
 * constant, or the memory at that address plus a constant. The pc is a known constant. This covers
 * PLT stubs, realigned frames, libc's signal trampoline and OpenSSL's assembler; other expressions
 * are refused and left to libunwind.
 *
 * Source: DWARF 5, section 2.5.
 */
#ifndef OTELPROF_CFI_EXPRESSION_H
#define OTELPROF_CFI_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

struct cfi_value {
    int8_t base; /* a DWARF register number; -1: constant */
    bool dereferenced;
    int64_t constant;
    int64_t addend; /* if dereferenced: added to the value that was loaded */
};

/* Evaluates the expression at `place` (its length, then its bytes), and reads no further than
 * `end`. Returns false if it has an operation that is not supported, if its bytes reach beyond
 * `end`, or if it does not leave exactly one value. Context: any. Async-signal-safe: yes. */
bool cfi_evaluate(uintptr_t place, uintptr_t end, uintptr_t pc, struct cfi_value *result);

#endif
