/* Defines functions that observe calls of a function whose parameters and results are not known for
 * certain. All registers in which a call passes arguments, or gets its results, are preserved, and
 * exceptions and jumps go through.
 *
 * Either the observer lets the call go on by a jump: then the called function finds the stack as
 * its caller left it. Or it also observes the result: then the function is called with a copy of
 * the first words that its caller may have put on the stack. Source: System V psABI for AMD64
 * (3.2.3).
 */
#ifndef OTELPROF_ARCH_OBSERVED_CALL_H
#define OTELPROF_ARCH_OBSERVED_CALL_H

#include <stdint.h>

/* Holds the registers of a call; once the call has returned, those of its result. */
struct observed_call {
    uintptr_t arguments[6]; /* rdi, rsi, rdx, rcx, r8, r9 */
    uintptr_t
        vectors_used;      /* rax: of a call with a variable number of arguments; then the result */
    uintptr_t chain;       /* r10; then the second word of the result, rdx */
    uintptr_t number;      /* number of the observed function: ARCH_DEFINE_OBSERVED() */
    uintptr_t is_observed; /* set by `before`: `after` is called, too */
    uint8_t vectors[128];  /* xmm0 to xmm7; then the result's xmm0 and xmm1 */
};
_Static_assert(sizeof(struct observed_call) == 208, "as the code below lays it out");

/* Returns the first word of the result. */
static inline uintptr_t observed_result(const struct observed_call *call) {
    return call->vectors_used;
}

/* Defines `static void name(void)`, to which the functions of ARCH_DEFINE_OBSERVED() jump.
 *     uintptr_t quick(struct observed_call *call)   returns the address of the called function, or
 *                                                   0: `before` is called. Uses no vector register
 *     uintptr_t before(struct observed_call *call)  returns the address of the called function
 *     void after(struct observed_call *call)        is called when that function has returned
 *     void copy(uintptr_t to[8], uintptr_t from)    copies eight words of the stack, of which some
 *                                                   are in the next page, which may not be mapped.
 *                                                   Uses no vector register
 * If the result is observed, eight words of the stack are copied: a function with more arguments
 * there gets wrong ones. */
#define ARCH_DEFINE_OBSERVER(name, quick, before, after, copy)                                     \
    __attribute__((naked, used)) static void name(void) {                                          \
        __asm__ volatile("pushq %%rbp\n\t"                                                         \
                         ".cfi_adjust_cfa_offset 8\n\t"                                            \
                         ".cfi_rel_offset %%rbp, 0\n\t"                                            \
                         "movq %%rsp, %%rbp\n\t"                                                   \
                         ".cfi_def_cfa_register %%rbp\n\t"                                         \
                         "leaq -208(%%rbp), %%rsp\n\t"                                             \
                         "andq $-16, %%rsp\n\t"                                                    \
                         "movq %%rdi, -208(%%rbp)\n\t"                                             \
                         "movq %%rsi, -200(%%rbp)\n\t"                                             \
                         "movq %%rdx, -192(%%rbp)\n\t"                                             \
                         "movq %%rcx, -184(%%rbp)\n\t"                                             \
                         "movq %%r8, -176(%%rbp)\n\t"                                              \
                         "movq %%r9, -168(%%rbp)\n\t"                                              \
                         "movq %%rax, -160(%%rbp)\n\t"                                             \
                         "movq %%r10, -152(%%rbp)\n\t"                                             \
                         "movq %%r11, -144(%%rbp)\n\t"                                             \
                         "movq $0, -136(%%rbp)\n\t"                                                \
                         "leaq -208(%%rbp), %%rdi\n\t"                                             \
                         "call " #quick "\n\t"                                                     \
                         "movq %%rax, %%r11\n\t"                                                   \
                         "testq %%rax, %%rax\n\t"                                                  \
                         "jne 3f\n\t"                                                              \
                         "movups %%xmm0, -128(%%rbp)\n\t"                                          \
                         "movups %%xmm1, -112(%%rbp)\n\t"                                          \
                         "movups %%xmm2, -96(%%rbp)\n\t"                                           \
                         "movups %%xmm3, -80(%%rbp)\n\t"                                           \
                         "movups %%xmm4, -64(%%rbp)\n\t"                                           \
                         "movups %%xmm5, -48(%%rbp)\n\t"                                           \
                         "movups %%xmm6, -32(%%rbp)\n\t"                                           \
                         "movups %%xmm7, -16(%%rbp)\n\t"                                           \
                         "leaq -208(%%rbp), %%rdi\n\t"                                             \
                         "call " #before "\n\t"                                                    \
                         "movq %%rax, %%r11\n\t"                                                   \
                         "movups -128(%%rbp), %%xmm0\n\t"                                          \
                         "movups -112(%%rbp), %%xmm1\n\t"                                          \
                         "movups -96(%%rbp), %%xmm2\n\t"                                           \
                         "movups -80(%%rbp), %%xmm3\n\t"                                           \
                         "movups -64(%%rbp), %%xmm4\n\t"                                           \
                         "movups -48(%%rbp), %%xmm5\n\t"                                           \
                         "movups -32(%%rbp), %%xmm6\n\t"                                           \
                         "movups -16(%%rbp), %%xmm7\n\t"                                           \
                         "3:\n\t"                                                                  \
                         "cmpq $0, -136(%%rbp)\n\t"                                                \
                         "jne 1f\n\t"                                                              \
                         "movq -208(%%rbp), %%rdi\n\t"                                             \
                         "movq -200(%%rbp), %%rsi\n\t"                                             \
                         "movq -192(%%rbp), %%rdx\n\t"                                             \
                         "movq -184(%%rbp), %%rcx\n\t"                                             \
                         "movq -176(%%rbp), %%r8\n\t"                                              \
                         "movq -168(%%rbp), %%r9\n\t"                                              \
                         "movq -152(%%rbp), %%r10\n\t"                                             \
                         "movq -160(%%rbp), %%rax\n\t"                                             \
                         ".cfi_remember_state\n\t"                                                 \
                         "leave\n\t"                                                               \
                         ".cfi_def_cfa %%rsp, 8\n\t"                                               \
                         ".cfi_restore %%rbp\n\t"                                                  \
                         "jmpq *%%r11\n\t"                                                         \
                         "1:\n\t"                                                                  \
                         ".cfi_restore_state\n\t"                                                  \
                         "leaq 16(%%rbp), %%rax\n\t"                                               \
                         "andl $4095, %%eax\n\t"                                                   \
                         "cmpl $4032, %%eax\n\t"                                                   \
                         "ja 4f\n\t"                                                               \
                         "pushq 72(%%rbp)\n\t"                                                     \
                         "pushq 64(%%rbp)\n\t"                                                     \
                         "pushq 56(%%rbp)\n\t"                                                     \
                         "pushq 48(%%rbp)\n\t"                                                     \
                         "pushq 40(%%rbp)\n\t"                                                     \
                         "pushq 32(%%rbp)\n\t"                                                     \
                         "pushq 24(%%rbp)\n\t"                                                     \
                         "pushq 16(%%rbp)\n\t"                                                     \
                         "jmp 2f\n\t"                                                              \
                         "4:\n\t"                                                                  \
                         "subq $80, %%rsp\n\t"                                                     \
                         "movq %%r11, 64(%%rsp)\n\t"                                               \
                         "movq %%rsp, %%rdi\n\t"                                                   \
                         "leaq 16(%%rbp), %%rsi\n\t"                                               \
                         "call " #copy "\n\t"                                                      \
                         "movq 64(%%rsp), %%r11\n\t"                                               \
                         "2:\n\t"                                                                  \
                         "movq -208(%%rbp), %%rdi\n\t"                                             \
                         "movq -200(%%rbp), %%rsi\n\t"                                             \
                         "movq -192(%%rbp), %%rdx\n\t"                                             \
                         "movq -184(%%rbp), %%rcx\n\t"                                             \
                         "movq -176(%%rbp), %%r8\n\t"                                              \
                         "movq -168(%%rbp), %%r9\n\t"                                              \
                         "movq -152(%%rbp), %%r10\n\t"                                             \
                         "movq -160(%%rbp), %%rax\n\t"                                             \
                         "call *%%r11\n\t"                                                         \
                         "leaq -208(%%rbp), %%rsp\n\t"                                             \
                         "andq $-16, %%rsp\n\t"                                                    \
                         "movq %%rax, -160(%%rbp)\n\t"                                             \
                         "movq %%rdx, -152(%%rbp)\n\t"                                             \
                         "movups %%xmm0, -128(%%rbp)\n\t"                                          \
                         "movups %%xmm1, -112(%%rbp)\n\t"                                          \
                         "leaq -208(%%rbp), %%rdi\n\t"                                             \
                         "call " #after "\n\t"                                                     \
                         "movups -128(%%rbp), %%xmm0\n\t"                                          \
                         "movups -112(%%rbp), %%xmm1\n\t"                                          \
                         "movq -160(%%rbp), %%rax\n\t"                                             \
                         "movq -152(%%rbp), %%rdx\n\t"                                             \
                         "leave\n\t"                                                               \
                         ".cfi_def_cfa %%rsp, 8\n\t"                                               \
                         "ret" ::);                                                                \
    }

/* Defines `static void name(void)`, the observed function `number` of the observer `observer`. */
#define ARCH_DEFINE_OBSERVED(name, observer, number)                                               \
    __attribute__((naked)) static void name(void) {                                                \
        __asm__ volatile("movl %[which], %%r11d\n\tjmp " #observer ::[which] "i"(number));         \
    }

#endif
