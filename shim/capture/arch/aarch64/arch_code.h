/* Recognizes the instructions and frames that the walker meets on a stack.
 *
 * Sources: Arm Architecture Reference Manual, C6.2 (BR, XPACLRI); Procedure Call Standard for the
 * Arm 64-bit Architecture; Linux arch/arm64/kernel/signal.c (struct rt_sigframe),
 * arch/arm64/include/uapi/asm/sigcontext.h. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_CODE_H
#define OTELPROF_ARCH_CODE_H

#include "arch_registers.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

enum {
    ARCH_RED_ZONE = 0,            /* no function may use memory below its stack pointer */
    ARCH_CALL_BYTES = 4,          /* the longest call instruction */
    ARCH_JUMP_BYTES = 4,          /* bytes that arch_is_indirect_jump() reads */
    ARCH_ENTRY_BYTES = 4,         /* bytes that arch_is_entry() reads */
    ARCH_SIGNAL_RETURN_BYTES = 8, /* bytes that arch_is_signal_trampoline() reads */
};

/* Bounds the distance of a call in generated code, in bytes: its displacement has 26 bits, signed,
 * in units of 4. */
static const uintptr_t arch_call_reach = UINT64_C(1) << 27;

/* On return from a signal handler the stack pointer points to the siginfo, which the ucontext
 * follows. At these offsets the ucontext has the interrupted registers. */
enum {
    SIGNAL_FRAME_CONTEXT = sizeof(siginfo_t),
    SIGNAL_FRAME_REGISTERS = SIGNAL_FRAME_CONTEXT + offsetof(ucontext_t, uc_mcontext.regs),
    SIGNAL_FRAME_FP = SIGNAL_FRAME_REGISTERS + 29 * 8,
    SIGNAL_FRAME_LINK = SIGNAL_FRAME_REGISTERS + 30 * 8,
    SIGNAL_FRAME_SP = SIGNAL_FRAME_CONTEXT + offsetof(ucontext_t, uc_mcontext.sp),
    SIGNAL_FRAME_PC = SIGNAL_FRAME_CONTEXT + offsetof(ucontext_t, uc_mcontext.pc),
};

static inline uint32_t arch_word(const void *code) {
    uint32_t word;
    memcpy(&word, code, sizeof word);
    return word;
}

/* Returns true for the kernel's signal trampoline, mov x8, #139; svc #0. No table describes it,
 * because the kernel's own object has no .eh_frame. */
static inline bool arch_is_signal_trampoline(const uint8_t code[ARCH_SIGNAL_RETURN_BYTES]) {
    return arch_word(code) == 0xd2801168 && arch_word(code + 4) == 0xd4000001;
}

/* Returns true if a rule of a signal frame describes the kernel's: the CFA is the stack pointer
 * saved in the ucontext (`is_saved_at_sp`: it is read there at `offset`). */
static inline bool arch_is_signal_frame(bool is_saved_at_sp, int32_t offset) {
    return is_saved_at_sp && offset == SIGNAL_FRAME_SP;
}

/* A call leaves the return address in the link register, x30. */
enum { ARCH_PUSHED_RETURN = 0 };

/* Returns the return address in a word that a call has saved: without the code by which pointer
 * authentication signs it. On processors without that extension the instruction has no effect. */
static inline uintptr_t arch_return_address(uintptr_t word) {
    register uintptr_t link __asm__("x30") = word;
    __asm__("hint #7" : "+r"(link)); /* xpaclri */
    return link;
}

static inline uintptr_t arch_link_register(const uint64_t registers[REGISTER_COUNT]) {
    return arch_return_address(registers[30]);
}

/* Says which bits of an address distinguish instructions: user space uses the low 48 bits, and an
 * instruction begins at a multiple of 4. */
enum { ARCH_ADDRESS_BITS = 48, ARCH_CODE_SHIFT = 2 };

/* Returns true for br with a register. */
static inline bool arch_is_indirect_jump(const uint8_t jump[ARCH_JUMP_BYTES]) {
    return (arch_word(jump) & 0xfffffc1f) == 0xd61f0000;
}

/* Returns true for the first instructions of a function into which a handler may have inserted a
 * call whose return address is on the top of the stack: here no call is inserted so. */
static inline bool arch_is_entry(const uint8_t code[ARCH_ENTRY_BYTES]) {
    (void)code;
    return false;
}

#endif
