/* Decodes one instruction: its length, and its effect on the stack and on the flow of control.
 *
 * For code that no table describes. Only effects that decide where a return address lies are
 * reported: on the stack pointer, on the frame pointer as a frame's address, and on where the code
 * goes on. All other instructions have no effect, and bytes that are no user-space instruction are
 * unknown.
 *
 * Sources: Intel SDM, volume 2, 2.1 to 2.7 (formats), appendix A (opcode maps).
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_INSTRUCTION_H
#define OTELPROF_ARCH_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARCH_INSTRUCTION_BYTES = 15 }; /* the longest */

enum instruction_effect {
    EFFECT_NONE,
    EFFECT_UNKNOWN,    /* no instruction, or not to be judged: what follows may be anything */
    EFFECT_STOP,       /* does not go on */
    EFFECT_BEGIN,      /* marks where indirect calls may go: a function's beginning, mostly */
    EFFECT_PAD,        /* a no-op of several bytes: fills the gap before the next function */
    EFFECT_RETURN,     /* to the address at the stack pointer */
    EFFECT_CALL,       /* `target` is 0 if it is in a register or in memory */
    EFFECT_JUMP,       /* to `target` */
    EFFECT_BRANCH,     /* to `target`, or on */
    EFFECT_JUMP_AWAY,  /* to somewhere; `value` is 1 if that is in a variable, as for a stub */
    EFFECT_MOVE_SP,    /* by `value` */
    EFFECT_PUSH_FP,    /* moves the stack pointer by -8, and keeps the frame pointer there */
    EFFECT_POP_FP,     /* the reverse */
    EFFECT_LOAD_FP,    /* from `value` above the stack pointer */
    EFFECT_FP_FROM_SP, /* frame pointer = stack pointer + `value` */
    EFFECT_SP_FROM_FP, /* the reverse */
    EFFECT_LEAVE,      /* stack pointer = frame pointer, and EFFECT_POP_FP */
    EFFECT_LOSE_SP,    /* a value that is not known */
};

struct instruction {
    uint8_t length;
    uint8_t effect;
    int32_t value;
    uintptr_t target;
};

/* The instruction at `code`, of which `available` bytes can be read; with EFFECT_UNKNOWN the length
 * does not count. Cost: about 5 ns. */
struct instruction arch_instruction(const uint8_t *code, size_t available);

/* These two return true if a direct call, to `*target`, ends at `address`, and if one through a
 * register or memory does. Nothing below `low` is read. */
bool arch_follows_direct_call(uintptr_t address, uintptr_t low, uintptr_t *target);
bool arch_follows_indirect_call(uintptr_t address, uintptr_t low);

/* Returns true if `code` begins like a signal handler's return trampoline: a quick check, before
 * tables are searched. */
static inline bool arch_is_signal_return(const uint8_t *code, size_t available) {
    return available >= 2 && code[0] == 0x48 && code[1] == 0xc7; /* mov $15, %rax: rt_sigreturn */
}

/* Returns true if the frame pointer may have been pushed right before `code`; reads the byte before
 * it. */
static inline bool arch_follows_push_fp(const uint8_t *code) {
    return code[-1] == 0x55;
}

/* Destination of code that only jumps on: `target`, or the address stored at `slot`. Both
 * are 0 if it is no such stub. */
struct code_stub {
    uintptr_t target;
    uintptr_t slot;
};
enum { ARCH_STUB_BYTES = 11 };
struct code_stub arch_stub(const uint8_t code[ARCH_STUB_BYTES]);

#endif
