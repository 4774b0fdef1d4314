#include "arch_instruction.h"

#include "arch_code.h"

enum { FRAME = 29, LINK = 30, STACK = 31 };

/* Returns the `count` bits of the word from bit `first` on, with their sign. */
static int64_t signed_bits(uint32_t word, unsigned first, unsigned count) {
    return (int64_t)((uint64_t)word << (64 - first - count)) >> (64 - count);
}

static unsigned bits(uint32_t word, unsigned first, unsigned count) {
    return word >> first & ((1u << count) - 1);
}

static struct instruction with_effect(enum instruction_effect effect, int64_t value) {
    return (struct instruction){
        .length = ARCH_INSTRUCTION_BYTES, .effect = (uint8_t)effect, .value = (int32_t)value};
}

static struct instruction to_target(enum instruction_effect effect, uintptr_t target) {
    return (struct instruction){
        .length = ARCH_INSTRUCTION_BYTES, .effect = (uint8_t)effect, .target = target};
}

/* Decodes additions and subtractions of a constant: they move the stack pointer and the frame
 * pointer. */
static struct instruction constant_arithmetic(uint32_t word) {
    const unsigned to = bits(word, 0, 5);
    const unsigned from = bits(word, 5, 5);
    const bool sets_flags = bits(word, 29, 1);
    const int64_t size = (int64_t)bits(word, 10, 12) << (bits(word, 22, 1) ? 12 : 0);
    const int64_t constant = bits(word, 30, 1) ? -size : size;
    if (to == LINK)
        return with_effect(EFFECT_UNKNOWN, 0);
    if (to == STACK && !sets_flags) {
        if (from == STACK)
            return with_effect(EFFECT_MOVE_SP, constant);
        return with_effect(from == FRAME ? EFFECT_SP_FROM_FP : EFFECT_LOSE_SP, constant);
    }
    if (to == FRAME && from == STACK)
        return with_effect(EFFECT_FP_FROM_SP, constant);
    return with_effect(EFFECT_NONE, 0);
}

/* Decodes the other instructions that compute a register. Those of constants (bits 28 to 26: 100)
 * and additions of an extended register may write the stack pointer. */
static struct instruction arithmetic(uint32_t word) {
    const bool may_write_sp = (word & 0x1f800000) == 0x12000000 || /* logical, of a constant */
                              (word & 0x1f200000) == 0x0b200000;   /* of an extended register */
    const bool sets_flags =
        may_write_sp &&
        ((word & 0x1f800000) == 0x12000000 ? bits(word, 29, 2) == 3 : bits(word, 29, 1));
    if (bits(word, 0, 5) == LINK)
        return with_effect(EFFECT_UNKNOWN, 0);
    return with_effect(
        may_write_sp && !sets_flags && bits(word, 0, 5) == STACK ? EFFECT_LOSE_SP : EFFECT_NONE, 0);
}

/* Decodes loads and stores of pairs. */
static struct instruction pair(uint32_t word) {
    const unsigned mode = bits(word, 23, 3); /* 1: behind, 3: before, the base is written */
    const bool is_vector = bits(word, 26, 1);
    const bool is_load = bits(word, 22, 1);
    const unsigned size = is_vector ? 2 + bits(word, 30, 2) : 2 + bits(word, 31, 1);
    if (is_load && !is_vector && (bits(word, 0, 5) == LINK || bits(word, 10, 5) == LINK))
        return with_effect(EFFECT_UNKNOWN, 0);
    if (bits(word, 5, 5) == STACK && (mode & 1))
        return with_effect(EFFECT_MOVE_SP, signed_bits(word, 15, 7) * (1 << size));
    return with_effect(EFFECT_NONE, 0);
}

/* Decodes loads and stores of one register. */
static struct instruction single(uint32_t word) {
    const bool is_vector = bits(word, 26, 1);
    const bool is_store = bits(word, 22, 2) == 0;
    const bool is_unscaled = !bits(word, 24, 1) && !bits(word, 21, 1);
    if (!is_vector && !is_store && bits(word, 0, 5) == LINK)
        return with_effect(EFFECT_UNKNOWN, 0);
    if (is_unscaled && bits(word, 5, 5) == STACK && bits(word, 10, 1)) /* the base is written */
        return with_effect(EFFECT_MOVE_SP, signed_bits(word, 12, 9));
    return with_effect(EFFECT_NONE, 0);
}

static bool is_return(uint32_t word) {
    return (word & 0xfffffc1f) == 0xd65f0000 || (word & 0xfffffbff) == 0xd65f0bff; /* ret, reta. */
}

/* br and blr, and their forms that check a signature (braa, blraa) */
static bool is_register_branch(uint32_t word, bool links) {
    const uint32_t plain = links ? 0xd63f0000 : 0xd61f0000;
    return (word & 0xfffffc1f) == plain || (word & 0xfefff800) == (plain | 0x0800);
}

/* Returns whether the jump ends a stub of the linker's: it jumps by x16 or x17, which one of the
 * two instructions before has loaded from an address in x16. A switch may use these registers, too.
 */
static bool is_stubs_jump(uint32_t word, uintptr_t at) {
    const unsigned by = bits(word, 5, 5);
    const uint32_t load = 0xf9400200 | by; /* ldr x16 or x17, [x16, #..] */
    if ((by != 16 && by != 17) || at % 4096 < 2 * ARCH_INSTRUCTION_BYTES)
        return false;
    return (arch_word((const void *)(at - 4)) & 0xffc003ff) == load ||
           (arch_word((const void *)(at - 8)) & 0xffc003ff) == load;
}

/* Decodes branches, exceptions and hints. `at` is the instruction's address. */
static struct instruction control(uint32_t word, uintptr_t at) {
    if ((word & 0x7c000000) == 0x14000000) /* b, bl */
        return to_target(word >> 31 ? EFFECT_CALL : EFFECT_JUMP,
                         at + (uintptr_t)(signed_bits(word, 0, 26) * 4));
    if ((word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000) /* b.c, cbz, cbnz */
        return to_target(EFFECT_BRANCH, at + (uintptr_t)(signed_bits(word, 5, 19) * 4));
    if ((word & 0x7e000000) == 0x36000000) /* tbz, tbnz */
        return to_target(EFFECT_BRANCH, at + (uintptr_t)(signed_bits(word, 5, 14) * 4));
    if (is_return(word))
        return with_effect(
            bits(word, 5, 5) == LINK || bits(word, 10, 2) ? EFFECT_RETURN : EFFECT_JUMP_AWAY, 0);
    if (is_register_branch(word, true))
        return to_target(EFFECT_CALL, 0);
    if (is_register_branch(word, false))
        return with_effect(EFFECT_JUMP_AWAY, is_stubs_jump(word, at));
    if ((word & 0xffe0001f) == 0xd4200000) /* brk */
        return with_effect(EFFECT_STOP, 0);
    /* bti with a target of calls, paciasp, pacibsp */
    if (word == 0xd503245f || word == 0xd50324df || word == 0xd503233f || word == 0xd503237f)
        return with_effect(EFFECT_BEGIN, 0);
    return with_effect(EFFECT_NONE, 0);
}

struct instruction arch_instruction(const uint8_t *code, size_t available) {
    if (available < ARCH_INSTRUCTION_BYTES || (uintptr_t)code % ARCH_INSTRUCTION_BYTES)
        return with_effect(EFFECT_UNKNOWN, 0);
    const uint32_t word = arch_word(code);
    if (word >> 16 == 0) /* udf */
        return with_effect(EFFECT_STOP, 0);
    if ((word & 0x1f800000) == 0x11000000)
        return constant_arithmetic(word);
    if ((word & 0x1c000000) == 0x14000000)
        return control(word, (uintptr_t)code);
    if ((word & 0x3a000000) == 0x28000000)
        return pair(word);
    if ((word & 0x3a000000) == 0x38000000)
        return single(word);
    if ((word & 0x1c000000) == 0x10000000 || (word & 0x0e000000) == 0x0a000000)
        return arithmetic(word);
    return with_effect(EFFECT_NONE, 0);
}

bool arch_follows_direct_call(uintptr_t address, uintptr_t low, uintptr_t *target) {
    if (address % ARCH_INSTRUCTION_BYTES || address < low + ARCH_CALL_BYTES)
        return false;
    const uintptr_t at = address - ARCH_CALL_BYTES;
    const uint32_t word = arch_word((const void *)at);
    *target = at + (uintptr_t)(signed_bits(word, 0, 26) * 4);
    return word >> 26 == 0x25;
}

bool arch_follows_indirect_call(uintptr_t address, uintptr_t low) {
    return address % ARCH_INSTRUCTION_BYTES == 0 && address >= low + ARCH_CALL_BYTES &&
           is_register_branch(arch_word((const void *)(address - ARCH_CALL_BYTES)), true);
}

bool arch_is_signal_return(const uint8_t *code, size_t available) {
    return available >= ARCH_SIGNAL_RETURN_BYTES && arch_is_signal_trampoline(code);
}

/* Reads a stub of the linker's: bti c, which may be missing; adrp x16; ldr x17 from there; then an
 * addition and a branch. A jump alone is a stub, too. */
struct code_stub arch_stub(const uint8_t code[ARCH_STUB_BYTES]) {
    const bool is_marked = arch_word(code) == 0xd503245f;
    const uint8_t *const at = code + (is_marked ? 4 : 0);
    const uint32_t page = arch_word(at);
    const uint32_t load = arch_word(at + 4);
    const struct instruction first = arch_instruction(at, ARCH_INSTRUCTION_BYTES);
    if (first.effect == EFFECT_JUMP)
        return (struct code_stub){.target = first.target};
    if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
        return (struct code_stub){0};
    const int64_t pages = signed_bits(page, 5, 19) * 4 + bits(page, 29, 2);
    const uintptr_t base = ((uintptr_t)at & ~(uintptr_t)0xfff) + (uintptr_t)(pages * 4096);
    return (struct code_stub){.slot = base + bits(load, 10, 12) * 8};
}
