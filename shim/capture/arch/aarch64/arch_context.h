/* Reads and changes the registers of a thread that a signal has interrupted, from its handler's
 * ucontext.
 *
 * Sources: DWARF for the Arm 64-bit Architecture, 4.1; Linux
 * arch/arm64/include/uapi/asm/{sigcontext,ucontext}.h. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_CONTEXT_H
#define OTELPROF_ARCH_CONTEXT_H

#include "arch_registers.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* Copies all registers of an interrupted thread, in DWARF order. */
static inline void registers_from_context(uint64_t registers[REGISTER_COUNT],
                                          const ucontext_t *context) {
    for (int i = 0; i < REGISTER_SP; i++)
        registers[i] = context->uc_mcontext.regs[i];
    registers[REGISTER_SP] = context->uc_mcontext.sp;
    registers[REGISTER_PC] = context->uc_mcontext.pc;
}

/* Returns true if the signal has ended a system call with EINTR: the instruction before the
 * interrupted one is svc #0. */
static inline bool context_has_interrupted_call(const ucontext_t *context) {
    const uint32_t svc = 0xd4000001;
    uint32_t before;
    if ((int64_t)context->uc_mcontext.regs[0] != -EINTR)
        return false;
    memcpy(&before, (const void *)(uintptr_t)(context->uc_mcontext.pc - sizeof before),
           sizeof before);
    return before == svc;
}

/* Makes the thread call `function` when the signal's handler returns. `function` must not
 * return. */
static inline void context_call(ucontext_t *context, void (*function)(void)) {
    const uint64_t branch_type = UINT64_C(3) << 10; /* PSTATE.BTYPE */
    context->uc_mcontext.sp &= ~UINT64_C(15);
    context->uc_mcontext.pstate &= ~branch_type;
    context->uc_mcontext.pc = (uintptr_t)function;
}

#endif
