/* Numbers the registers of a thread that was interrupted, or whose stack is unwound. The registers
 * are in an array, in the order of their DWARF numbers. Code outside arch/ knows only the count and
 * three of the names.
 *
 * Source: DWARF for the Arm 64-bit Architecture, 4.1: x0 to x30, the stack pointer, and 32 for the
 * program counter.
 */
#ifndef OTELPROF_ARCH_REGISTERS_H
#define OTELPROF_ARCH_REGISTERS_H

#if !defined(__aarch64__) || defined(__ILP32__) || defined(__AARCH64EB__)
#error "arch/aarch64 is for little-endian 64-bit Arm with 64-bit pointers"
#endif

enum {
    REGISTER_FP = 29, /* frame pointer: x29 */
    REGISTER_SP = 31, /* stack pointer */
    REGISTER_PC = 32, /* program counter */
    REGISTER_COUNT = 33,
};

#endif
