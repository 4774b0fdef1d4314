/* The attribute of a function that code which is not ours calls directly.
 *
 * The psABI has every caller keep the stack pointer at a multiple of 16 (3.2.2). Assembler written
 * by hand, old compilers and other languages' thunks do not, and most of libc's functions serve
 * them: aligned stores to the stack are rare there.
 */
#ifndef OTELPROF_ARCH_ENTRY_H
#define OTELPROF_ARCH_ENTRY_H

/* Has a function align its stack, whatever its caller's is, for itself and all that it calls. */
#define ARCH_ANY_STACK __attribute__((force_align_arg_pointer, noinline))

#endif
