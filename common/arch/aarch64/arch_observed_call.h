/* Defines functions that observe calls of a function whose parameters and results are not known for
 * certain. All registers in which a call passes arguments, or gets its results, are preserved, and
 * exceptions and jumps go through.
 *
 * Either the observer lets the call go on by a jump: then the called function finds the stack as
 * its caller left it. Or it also observes the result: then the function is called with a copy of
 * the first words that its caller may have put on the stack. Source: Procedure Call Standard for
 * the Arm 64-bit Architecture (6.1 to 6.9).
 */
#ifndef OTELPROF_ARCH_OBSERVED_CALL_H
#define OTELPROF_ARCH_OBSERVED_CALL_H

#include <stdint.h>

/* Holds the registers of a call; once the call has returned, those of its result. */
struct observed_call {
    uintptr_t arguments[8]; /* x0 to x7 */
    uintptr_t indirect;     /* x8: the address of a result in memory */
    uintptr_t number;       /* number of the observed function: ARCH_DEFINE_OBSERVED() */
    uintptr_t is_observed;  /* set by `before`: `after` is called, too */
    uintptr_t unused;
    uintptr_t results[2]; /* the result's x0 and x1 */
    uint8_t vectors[128]; /* q0 to q7; then the result's q0 to q7 */
};
_Static_assert(sizeof(struct observed_call) == 240, "as the code below lays it out");

/* Returns the first word of the result. */
static inline uintptr_t observed_result(const struct observed_call *call) {
    return call->results[0];
}

/* Save and restore the registers of arguments and results: the call is at the stack pointer. */
#define OBSERVED_SAVE_WORDS                                                                        \
    "stp x0, x1, [sp]\n\t"                                                                         \
    "stp x2, x3, [sp, #16]\n\t"                                                                    \
    "stp x4, x5, [sp, #32]\n\t"                                                                    \
    "stp x6, x7, [sp, #48]\n\t"
#define OBSERVED_RESTORE_WORDS                                                                     \
    "ldp x0, x1, [sp]\n\t"                                                                         \
    "ldp x2, x3, [sp, #16]\n\t"                                                                    \
    "ldp x4, x5, [sp, #32]\n\t"                                                                    \
    "ldp x6, x7, [sp, #48]\n\t"                                                                    \
    "ldr x8, [sp, #64]\n\t"
#define OBSERVED_SAVE_VECTORS                                                                      \
    "stp q0, q1, [sp, #112]\n\t"                                                                   \
    "stp q2, q3, [sp, #144]\n\t"                                                                   \
    "stp q4, q5, [sp, #176]\n\t"                                                                   \
    "stp q6, q7, [sp, #208]\n\t"
#define OBSERVED_RESTORE_VECTORS                                                                   \
    "ldp q0, q1, [sp, #112]\n\t"                                                                   \
    "ldp q2, q3, [sp, #144]\n\t"                                                                   \
    "ldp q4, q5, [sp, #176]\n\t"                                                                   \
    "ldp q6, q7, [sp, #208]\n\t"

/* Defines `static void name(void)`, to which the functions of ARCH_DEFINE_OBSERVED() jump.
 *     uintptr_t quick(struct observed_call *call)   returns the address of the called function, or
 *                                                   0: `before` is called. Uses no vector register
 *     uintptr_t before(struct observed_call *call)  returns the address of the called function
 *     void after(struct observed_call *call)        is called when that function has returned
 *     void copy(uintptr_t to[8], uintptr_t from)    copies eight words of the stack, of which some
 *                                                   are in the next page, which may not be mapped.
 *                                                   Uses no vector register
 * If the result is observed, eight words of the stack are copied: a function with more arguments
 * there gets wrong ones. The frame: the record of x29 and x30, and above it the called function's
 * address; below it the struct. */
#define ARCH_DEFINE_OBSERVER(name, quick, before, after, copy)                                     \
    void name(void);                                                                               \
    __asm__(".pushsection .text." #name ",\"ax\",@progbits\n"                                      \
            ".hidden " #name "\n"                                                                  \
            ".globl " #name "\n"                                                                   \
            ".type " #name ",%function\n"                                                          \
            ".p2align 2\n" #name ":\n\t"                                                           \
            ".cfi_startproc\n\t"                                                                   \
            "hint #34\n\t" /* bti c */                                                             \
            "stp x29, x30, [sp, #-32]!\n\t"                                                        \
            ".cfi_def_cfa_offset 32\n\t"                                                           \
            ".cfi_offset 29, -32\n\t"                                                              \
            ".cfi_offset 30, -24\n\t"                                                              \
            "mov x29, sp\n\t"                                                                      \
            ".cfi_def_cfa 29, 32\n\t"                                                              \
            "sub sp, sp, #240\n\t" OBSERVED_SAVE_WORDS "stp x8, x17, [sp, #64]\n\t"                \
            "str xzr, [sp, #80]\n\t"                                                               \
            "mov x0, sp\n\t"                                                                       \
            "bl " #quick "\n\t"                                                                    \
            "cbnz x0, 3f\n\t" OBSERVED_SAVE_VECTORS "mov x0, sp\n\t"                               \
            "bl " #before "\n\t" OBSERVED_RESTORE_VECTORS "3:\n\t"                                 \
            "mov x16, x0\n\t"                                                                      \
            "ldr x17, [sp, #80]\n\t"                                                               \
            "cbnz x17, 1f\n\t" OBSERVED_RESTORE_WORDS "mov sp, x29\n\t"                            \
            ".cfi_remember_state\n\t"                                                              \
            "ldp x29, x30, [sp], #32\n\t"                                                          \
            ".cfi_restore 29\n\t"                                                                  \
            ".cfi_restore 30\n\t"                                                                  \
            ".cfi_def_cfa 31, 0\n\t"                                                               \
            "br x16\n\t"                                                                           \
            ".cfi_restore_state\n"                                                                 \
            "1:\n\t"                                                                               \
            "str x16, [x29, #16]\n\t"                                                              \
            "sub sp, sp, #64\n\t"                                                                  \
            "add x1, x29, #32\n\t"                                                                 \
            "and x0, x1, #4095\n\t"                                                                \
            "cmp x0, #4032\n\t"                                                                    \
            "b.hi 4f\n\t"                                                                          \
            "ldp x2, x3, [x1]\n\t"                                                                 \
            "stp x2, x3, [sp]\n\t"                                                                 \
            "ldp x2, x3, [x1, #16]\n\t"                                                            \
            "stp x2, x3, [sp, #16]\n\t"                                                            \
            "ldp x2, x3, [x1, #32]\n\t"                                                            \
            "stp x2, x3, [sp, #32]\n\t"                                                            \
            "ldp x2, x3, [x1, #48]\n\t"                                                            \
            "stp x2, x3, [sp, #48]\n\t"                                                            \
            "b 2f\n"                                                                               \
            "4:\n\t"                                                                               \
            "mov x0, sp\n\t"                                                                       \
            "bl " #copy "\n"                                                                       \
            "2:\n\t"                                                                               \
            "add sp, sp, #64\n\t" OBSERVED_RESTORE_WORDS "sub sp, sp, #64\n\t"                     \
            "ldr x16, [x29, #16]\n\t"                                                              \
            "blr x16\n\t"                                                                          \
            "sub sp, x29, #240\n\t"                                                                \
            "stp x0, x1, [sp, #96]\n\t" OBSERVED_SAVE_VECTORS "mov x0, sp\n\t"                     \
            "bl " #after "\n\t" OBSERVED_RESTORE_VECTORS "ldp x0, x1, [sp, #96]\n\t"               \
            "mov sp, x29\n\t"                                                                      \
            "ldp x29, x30, [sp], #32\n\t"                                                          \
            ".cfi_restore 29\n\t"                                                                  \
            ".cfi_restore 30\n\t"                                                                  \
            ".cfi_def_cfa 31, 0\n\t"                                                               \
            "ret\n\t"                                                                              \
            ".cfi_endproc\n\t"                                                                     \
            ".size " #name ", . - " #name "\n"                                                     \
            ".popsection\n");

/* Defines `void name(void)`, the observed function `number` of the observer `observer`. */
#define ARCH_DEFINE_OBSERVED(name, observer, number)                                               \
    void name(void);                                                                               \
    __asm__(".pushsection .text." #name ",\"ax\",@progbits\n"                                      \
            ".hidden " #name "\n"                                                                  \
            ".globl " #name "\n"                                                                   \
            ".type " #name ",%function\n"                                                          \
            ".p2align 2\n" #name ":\n\t"                                                           \
            ".cfi_startproc\n\t"                                                                   \
            "hint #34\n\t" /* bti c */                                                             \
            "mov w17, #" #number "\n\t"                                                            \
            "b " #observer "\n\t"                                                                  \
            ".cfi_endproc\n\t"                                                                     \
            ".size " #name ", . - " #name "\n"                                                     \
            ".popsection\n");

#endif
