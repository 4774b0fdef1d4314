/* Decodes one instruction: its effect on the stack and on the flow of control.
 *
 * The walker uses this for code that no unwind table describes. So it reports only the effects that
 * decide where a return address is: on the stack pointer, on the frame pointer as a frame's
 * address, on the link register, and on the flow of control. All other instructions have no effect.
 *
 * Source: Arm Architecture Reference Manual, C4.1 (encodings).
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_INSTRUCTION_H
#define OTELPROF_ARCH_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARCH_INSTRUCTION_BYTES = 4 };

/* Those that the decoder of this architecture never returns are in the list because code_rule.c
 * names them. */
enum instruction_effect {
    EFFECT_NONE,
    EFFECT_UNKNOWN, /* changes the link register, or is no instruction */
    EFFECT_STOP,    /* ends the flow of control: the code behind the instruction is not reached */
    EFFECT_BEGIN,   /* marks a target of indirect calls: mostly a function's beginning */
    EFFECT_PAD,     /* never */
    EFFECT_RETURN,  /* returns to the address in the link register */
    EFFECT_CALL,    /* calls `target`; 0: the address is in a register */
    EFFECT_JUMP,    /* jumps to `target` */
    EFFECT_BRANCH,  /* jumps to `target`, or continues */
    /* jumps to an unknown address; `value` is 1 if the register is one that stubs use */
    EFFECT_JUMP_AWAY,
    EFFECT_MOVE_SP,    /* adds `value` to the stack pointer */
    EFFECT_PUSH_FP,    /* never */
    EFFECT_POP_FP,     /* never */
    EFFECT_LOAD_FP,    /* never */
    EFFECT_FP_FROM_SP, /* frame pointer = stack pointer + `value` */
    EFFECT_SP_FROM_FP, /* stack pointer = frame pointer + `value` */
    EFFECT_LEAVE,      /* never */
    EFFECT_LOSE_SP,    /* sets the stack pointer to an unknown value */
};

struct instruction {
    uint8_t length;
    uint8_t effect;
    int32_t value;
    uintptr_t target;
};

/* Decodes the instruction at `code`, of which `available` bytes can be read. */
struct instruction arch_instruction(const uint8_t *code, size_t available);

/* Return true if a direct call, to `*target`, ends at `address`, or if an indirect call (through a
 * register) does. Read no byte below `low`. */
bool arch_follows_direct_call(uintptr_t address, uintptr_t low, uintptr_t *target);
bool arch_follows_indirect_call(uintptr_t address, uintptr_t low);

/* Returns true if `code` begins like a signal handler's return trampoline: a quick check, before
 * tables are searched. */
bool arch_is_signal_return(const uint8_t *code, size_t available);

/* Returns true if the frame pointer may have been pushed right before `code`, alone: never. */
static inline bool arch_follows_push_fp(const uint8_t *code) {
    (void)code;
    return false;
}

/* Holds the destination of a stub, which is code that only jumps: `target`, or the address stored
 * at `slot`. Both are 0 if the code is no stub. */
struct code_stub {
    uintptr_t target;
    uintptr_t slot;
};
enum { ARCH_STUB_BYTES = 20 };
struct code_stub arch_stub(const uint8_t code[ARCH_STUB_BYTES]);

#endif
