/* Decodes one instruction: its length, and its effect on the stack and on the flow of control.
 *
 * The walker uses this for code that no unwind table describes. So it reports only the effects that
 * decide where a return address is: on the stack pointer, on the frame pointer as a frame's
 * address, and on the flow of control. All other instructions have no effect; bytes that are no
 * user-space instruction are unknown.
 *
 * Sources: Intel SDM, volume 2, 2.1 to 2.7 (formats), appendix A (opcode maps).
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_INSTRUCTION_H
#define OTELPROF_ARCH_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARCH_INSTRUCTION_BYTES = 15 }; /* length of the longest instruction */

enum instruction_effect {
    EFFECT_NONE,
    EFFECT_UNKNOWN, /* not decoded, so the next bytes may be any code */
    EFFECT_STOP,    /* ends the flow of control: the code behind the instruction is not reached */
    EFFECT_BEGIN,   /* marks a target of indirect calls: mostly a function's beginning */
    EFFECT_PAD,     /* a no-op of several bytes: fills the gap before the next function */
    EFFECT_RETURN,  /* returns to the address at the stack pointer */
    EFFECT_CALL,    /* calls `target`; 0: the address is in a register or in memory */
    EFFECT_JUMP,    /* jumps to `target` */
    EFFECT_BRANCH,  /* jumps to `target`, or continues */
    /* jumps to an unknown address; `value` is 1 if a variable has the address, as in a stub */
    EFFECT_JUMP_AWAY,
    EFFECT_MOVE_SP,    /* adds `value` to the stack pointer */
    EFFECT_PUSH_FP,    /* moves the stack pointer by -8, and stores the frame pointer there */
    EFFECT_POP_FP,     /* loads the frame pointer, and moves the stack pointer by 8 */
    EFFECT_LOAD_FP,    /* loads the frame pointer from `value` above the stack pointer */
    EFFECT_FP_FROM_SP, /* frame pointer = stack pointer + `value` */
    EFFECT_SP_FROM_FP, /* stack pointer = frame pointer + `value` */
    EFFECT_LEAVE,      /* stack pointer = frame pointer, and EFFECT_POP_FP */
    EFFECT_LOSE_SP,    /* sets the stack pointer to an unknown value */
};

struct instruction {
    uint8_t length;
    uint8_t effect;
    int32_t value;
    uintptr_t target;
};

/* Decodes the instruction at `code`, of which `available` bytes can be read. With EFFECT_UNKNOWN
 * the length has no meaning. Cost: about 5 ns. */
struct instruction arch_instruction(const uint8_t *code, size_t available);

/* Return true if a direct call, to `*target`, ends at `address`, or if an indirect call (through a
 * register or memory) does. Read no byte below `low`. */
bool arch_follows_direct_call(uintptr_t address, uintptr_t low, uintptr_t *target);
bool arch_follows_indirect_call(uintptr_t address, uintptr_t low);

/* Returns true if `code` begins like a signal handler's return trampoline: a quick check, before
 * tables are searched. */
static inline bool arch_is_signal_return(const uint8_t *code, size_t available) {
    return available >= 2 && code[0] == 0x48 && code[1] == 0xc7; /* mov $15, %rax: rt_sigreturn */
}

/* Returns true if the frame pointer may have been pushed right before `code`; reads the byte before
 * `code`. */
static inline bool arch_follows_push_fp(const uint8_t *code) {
    return code[-1] == 0x55;
}

/* Holds the destination of a stub, which is code that only jumps: `target`, or the address stored
 * at `slot`. Both are 0 if the code is no stub. */
struct code_stub {
    uintptr_t target;
    uintptr_t slot;
};
enum { ARCH_STUB_BYTES = 11 };
struct code_stub arch_stub(const uint8_t code[ARCH_STUB_BYTES]);

#endif
