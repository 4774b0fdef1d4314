/* Reads and changes the registers of a thread that a signal has interrupted, from its handler's
 * ucontext.
 *
 * Sources: System V psABI for AMD64 (figure 3.36, 3.2.1, 3.2.2); Linux
 * arch/x86/include/uapi/asm/{sigcontext,ucontext}.h. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_CONTEXT_H
#define OTELPROF_ARCH_CONTEXT_H

#include "arch_registers.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/* Copies all registers of an interrupted thread, in DWARF order. */
static inline void registers_from_context(uint64_t registers[REGISTER_COUNT],
                                          const ucontext_t *context) {
    static const uint8_t order[REGISTER_COUNT] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (int i = 0; i < REGISTER_COUNT; i++)
        registers[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
}

/* Returns true if the signal has ended a system call with EINTR. The call's instruction leaves its
 * return address in rcx and the flags in r11. */
static inline bool context_has_interrupted_call(const ucontext_t *context) {
    const greg_t *const registers = context->uc_mcontext.gregs;
    return registers[REG_RAX] == -EINTR && registers[REG_RCX] == registers[REG_RIP] &&
           registers[REG_R11] == registers[REG_EFL];
}

/* Makes the thread call `function` when the signal's handler returns. `function` must not
 * return. */
static inline void context_call(ucontext_t *context, void (*function)(void)) {
    enum { RED_ZONE = 128, DIRECTION_FLAG = 0x400 }; /* psABI 3.2.2, 3.2.1 */
    greg_t *const registers = context->uc_mcontext.gregs;
    registers[REG_RSP] = ((registers[REG_RSP] - RED_ZONE) & ~(greg_t)15) - 8;
    registers[REG_EFL] &= ~(greg_t)DIRECTION_FLAG;
    registers[REG_RIP] = (greg_t)(uintptr_t)function;
}

#endif
