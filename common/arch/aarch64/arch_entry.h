/* Defines the attribute of functions that other code calls directly.
 *
 * Linux has the processor check that the stack pointer is a multiple of 16 at each access by it
 * (SCTLR_EL1.SA0), so no caller can have another one.
 */
#ifndef OTELPROF_ARCH_ENTRY_H
#define OTELPROF_ARCH_ENTRY_H

#define ARCH_ANY_STACK __attribute__((noinline))

#endif
