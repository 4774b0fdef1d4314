/* Numbers the registers of a thread that was interrupted, or whose stack is unwound. The registers
 * are in an array, in the order of their DWARF numbers. Code outside arch/ knows only the count and
 * three of the names.
 *
 * Source: System V psABI for AMD64, figure 3.36: rax rdx rcx rbx rsi rdi rbp rsp r8-r15, and 16 for
 * the return address, in whose place the rip is stored.
 */
#ifndef OTELPROF_ARCH_REGISTERS_H
#define OTELPROF_ARCH_REGISTERS_H

#if !defined(__x86_64__) || defined(__ILP32__)
#error "arch/x86_64 is for 64-bit x86 with 64-bit pointers"
#endif

enum {
    REGISTER_FP = 6,  /* frame pointer: rbp */
    REGISTER_SP = 7,  /* stack pointer: rsp */
    REGISTER_PC = 16, /* program counter: rip */
    REGISTER_COUNT = 17,
};

#endif
