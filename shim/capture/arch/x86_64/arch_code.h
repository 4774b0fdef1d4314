/* Recognizes the instructions and frames that the walker meets on a stack.
 *
 * Sources: System V psABI for AMD64 (3.2.2, 3.4.1); Intel SDM, volume 2, CALL and JMP; Linux
 * arch/x86/include/uapi/asm/{sigcontext,ucontext}.h. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_CODE_H
#define OTELPROF_ARCH_CODE_H

#include "arch_registers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

enum {
    ARCH_RED_ZONE = 128,  /* bytes that a leaf may use below its stack pointer (psABI 3.2.2) */
    ARCH_CALL_BYTES = 7,  /* the longest call instruction */
    ARCH_JUMP_BYTES = 2,  /* bytes that arch_is_indirect_jump() reads */
    ARCH_ENTRY_BYTES = 4, /* bytes that arch_is_entry() reads */
};

/* Bounds the distance of a call in generated code, in bytes: its displacement has 32 bits,
 * signed. */
static const uintptr_t arch_call_reach = UINT64_C(1) << 31;

/* On return from a signal handler the stack pointer points to the ucontext. At these offsets the
 * ucontext has the interrupted registers. */
enum {
    SIGNAL_FRAME_FP = offsetof(ucontext_t, uc_mcontext.gregs[REG_RBP]),
    SIGNAL_FRAME_SP = offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]),
    SIGNAL_FRAME_PC = offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]),
};

/* Returns true if the rule in libc's tables for its signal trampoline describes the kernel's signal
 * frame: the CFA is the stack pointer saved in the ucontext (`is_saved_at_sp`: it is read there at
 * `offset`).
 */
static inline bool arch_is_signal_frame(bool is_saved_at_sp, int32_t offset) {
    return is_saved_at_sp && offset == SIGNAL_FRAME_SP;
}

/* A call pushes the return address right below the CFA. The value is 0 on an architecture whose
 * calls leave the address in a link register. */
enum { ARCH_PUSHED_RETURN = -8 };

/* Describes the link register: its offset in the signal frame, and its value in a thread; 0: this
 * architecture has no link register. */
enum { SIGNAL_FRAME_LINK = 0 };
static inline uintptr_t arch_link_register(const uint64_t registers[REGISTER_COUNT]) {
    (void)registers;
    return 0;
}

/* Returns the return address in a word that a call has saved. Other architectures may sign the
 * word. */
static inline uintptr_t arch_return_address(uintptr_t word) {
    return word;
}

/* Says which bits of an address distinguish instructions: user space uses the low 47 bits, and an
 * instruction begins at any byte. */
enum { ARCH_ADDRESS_BITS = 47, ARCH_CODE_SHIFT = 0 };

/* Returns true for the jump ff /4 with a register; a REX prefix may precede it. */
static inline bool arch_is_indirect_jump(const uint8_t jump[ARCH_JUMP_BYTES]) {
    return jump[0] == 0xff && (jump[1] & 0xf8) == 0xe0;
}

/* Returns true for the first instructions of a function that keeps a frame pointer: push rbp; mov
 * rbp, rsp. */
static inline bool arch_is_entry(const uint8_t code[ARCH_ENTRY_BYTES]) {
    static const uint8_t entry[ARCH_ENTRY_BYTES] = {0x55, 0x48, 0x89, 0xe5};
    return memcmp(code, entry, sizeof entry) == 0;
}

#endif
