/* Defines the attribute of functions that other code calls directly.
 *
 * The psABI requires that every caller keeps the stack pointer at a multiple of 16 (3.2.2).
 * Assembler written by hand, old compilers and other languages' thunks break that rule. libc mostly
 * works for such callers, because it seldom makes aligned stores to the stack.
 */
#ifndef OTELPROF_ARCH_ENTRY_H
#define OTELPROF_ARCH_ENTRY_H

/* Makes a function align its stack, for itself and for all functions that it calls, even if its
 * caller has not. */
#define ARCH_ANY_STACK __attribute__((force_align_arg_pointer, noinline))

#endif
