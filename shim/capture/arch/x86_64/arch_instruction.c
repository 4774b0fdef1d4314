#include "arch_instruction.h"

#include "arch_code.h"

#include <string.h>

enum { RSP = 4, RBP = 5 }; /* numbers in ModRM and opcodes, without REX */

enum opcode_map { MAP_ONE = 0, MAP_0F = 1, MAP_0F38 = 2, MAP_0F3A = 3 };

/* Holds the state of the decoder while it reads an instruction. */
struct decoder {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
    bool is_wide;     /* a REX prefix has bit W: operands have 64 bits */
    bool is_16_bit;   /* prefix 66: operands have 16 bits */
    bool is_32_bit;   /* prefix 67: addresses have 32 bits */
    bool is_repeated; /* prefix f3: repeats a string instruction */
    /* VEX or EVEX prefix: such an instruction does not change the stack pointer */
    bool is_vector;
    uint8_t extend_reg;
    uint8_t extend_index;
    uint8_t extend_base;
    uint8_t map;
    uint8_t opcode;
    bool has_modrm;
    uint8_t mod;
    uint8_t reg; /* register number, 0 to 15 */
    /* register number, 0 to 15: the register operand, or the base of the address (from SIB, if
     * there is one) */
    uint8_t base;
    bool has_index;
    bool is_relative; /* the displacement is relative to the next instruction */
    int32_t displacement;
    int64_t immediate;
};

/* Bit i is set if the opcode 16 * row + i has a ModRM byte. */
static const uint16_t modrm_one[16] = {0x0f0f, 0x0f0f, 0x0f0f, 0x0f0f, 0x0000, 0x0000,
                                       0x0a08, 0x0000, 0xffff, 0x0000, 0x0000, 0x0000,
                                       0x00c3, 0xff0f, 0x0000, 0xc0c0};
static const uint16_t modrm_0f[16] = {0xa00f, 0xffff, 0xff0f, 0x0000, 0xffff, 0xffff,
                                      0xffff, 0xff7f, 0x0000, 0xffff, 0xf8f8, 0xffff,
                                      0x00ff, 0xffff, 0xffff, 0xffff};
/* Marks opcodes that do not exist in 64-bit mode, or are too rare to be decoded. */
static const uint16_t invalid_one[16] = {0xc0c0, 0xc0c0, 0x8080, 0x8080, 0xffff, 0x0000,
                                         0x0007, 0x0000, 0x0004, 0x0400, 0x0000, 0x0000,
                                         0x4000, 0x0070, 0x0400, 0x0002};

static bool bit(const uint16_t rows[16], uint8_t opcode) {
    return rows[opcode >> 4] >> (opcode & 15) & 1;
}

static uint8_t next(struct decoder *d) {
    if (d->at == d->end) {
        d->failed = true;
        return 0;
    }
    return *d->at++;
}

static int64_t decoder_next_number(struct decoder *d, int bytes) {
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)next(d) << (8 * i);
    const int unused = 64 - 8 * bytes;
    return bytes ? (int64_t)(number << unused) >> unused : 0;
}

static bool read_prefix(struct decoder *d, uint8_t byte) {
    switch (byte) {
    case 0x66:
        d->is_16_bit = true;
        return true;
    case 0x67:
        d->is_32_bit = true;
        return true;
    case 0xf3:
        d->is_repeated = true;
        return true;
    case 0xf0:
    case 0xf2:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x26:
    case 0x64:
    case 0x65:
        return true;
    default:
        return false;
    }
}

static void read_rex(struct decoder *d, uint8_t rex) {
    d->is_wide = rex & 8;
    d->extend_reg = (rex & 4) << 1;
    d->extend_index = (rex & 2) << 2;
    d->extend_base = (rex & 1) << 3;
}

static void read_escaped(struct decoder *d) {
    d->map = MAP_0F;
    d->opcode = next(d);
    if (d->opcode != 0x38 && d->opcode != 0x3a)
        return;
    d->map = d->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
    d->opcode = next(d);
}

/* Reads a VEX or EVEX prefix: after c5 comes one more byte, after c4 two, after 62 three; then the
 * opcode. */
static void read_vector(struct decoder *d, uint8_t prefix) {
    const uint8_t first = next(d);
    d->is_vector = true;
    d->map = prefix == 0xc5 ? MAP_0F : first & (prefix == 0xc4 ? 31 : 7);
    for (int more = prefix == 0xc5 ? 0 : prefix == 0xc4 ? 1 : 2; more > 0; more--)
        (void)next(d);
    d->opcode = next(d);
    /* maps 5 and 6 have half-precision instructions, like map 1 without an immediate operand */
    if (d->map == MAP_ONE || (d->map > MAP_0F3A && d->map != 5 && d->map != 6))
        d->failed = true;
}

static void read_opcode(struct decoder *d) {
    uint8_t byte = next(d);
    while (!d->failed && read_prefix(d, byte))
        byte = next(d);
    if ((byte & 0xf0) == 0x40) {
        read_rex(d, byte);
        byte = next(d);
    }
    if (byte == 0x0f)
        read_escaped(d);
    else if (byte == 0xc4 || byte == 0xc5 || byte == 0x62)
        read_vector(d, byte);
    else
        d->opcode = byte;
    if (d->map == MAP_ONE && !d->is_vector && bit(invalid_one, d->opcode))
        d->failed = true;
}

static bool has_modrm(const struct decoder *d) {
    if (d->is_vector)
        return d->map != MAP_0F || d->opcode != 0x77;
    if (d->map == MAP_ONE)
        return bit(modrm_one, d->opcode);
    return d->map != MAP_0F || bit(modrm_0f, d->opcode);
}

static void read_sib(struct decoder *d) {
    const uint8_t sib = next(d);
    const uint8_t index = (sib >> 3 & 7) | d->extend_index;
    d->base = (sib & 7) | d->extend_base;
    d->has_index = index != RSP;
    if (d->mod == 0 && (sib & 7) == RBP) {
        /* without a base register the address is unknown, as with an index register */
        d->has_index = true;
        d->displacement = (int32_t)decoder_next_number(d, 4);
    }
}

static void read_modrm(struct decoder *d) {
    const uint8_t modrm = next(d);
    d->has_modrm = true;
    d->mod = modrm >> 6;
    d->reg = (modrm >> 3 & 7) | d->extend_reg;
    d->base = (modrm & 7) | d->extend_base;
    if (d->mod == 3)
        return;
    if ((modrm & 7) == RSP)
        read_sib(d);
    else if (d->mod == 0 && (modrm & 7) == RBP) {
        d->is_relative = true;
        d->displacement = (int32_t)decoder_next_number(d, 4);
    }
    if (d->mod)
        d->displacement = (int32_t)decoder_next_number(d, d->mod == 1 ? 1 : 4);
}

/* Returns the size of an immediate operand: 4 bytes, or 2 with the operand-size prefix. */
static int operand_bytes(const struct decoder *d) {
    return d->is_16_bit && !d->is_wide ? 2 : 4;
}

static int immediate_of_one(const struct decoder *d) {
    const uint8_t opcode = d->opcode;
    if (opcode < 0x40)
        return (opcode & 7) == 4 ? 1 : (opcode & 7) == 5 ? operand_bytes(d) : 0;
    if ((opcode & 0xf0) == 0x70 || (opcode & 0xf8) == 0xb0 || (opcode & 0xf8) == 0xe0)
        return 1;
    if ((opcode & 0xf8) == 0xb8)
        return d->is_wide ? 8 : operand_bytes(d);
    if ((opcode & 0xfc) == 0xa0)
        return d->is_32_bit ? 4 : 8;
    switch (opcode) {
    case 0x6a:
    case 0x6b:
    case 0x80:
    case 0x83:
    case 0xa8:
    case 0xc0:
    case 0xc1:
    case 0xc6:
    case 0xcd:
    case 0xeb:
        return 1;
    case 0x68:
    case 0x69:
    case 0x81:
    case 0xa9:
    case 0xc7:
        return operand_bytes(d);
    case 0xc2:
    case 0xca:
        return 2;
    case 0xc8:
        return 3;
    case 0xe8:
    case 0xe9:
        return 4;
    case 0xf6:
        return (d->reg & 7) < 2 ? 1 : 0;
    case 0xf7:
        return (d->reg & 7) < 2 ? operand_bytes(d) : 0;
    default:
        return 0;
    }
}

static int immediate_of_0f(uint8_t opcode) {
    if ((opcode & 0xf0) == 0x80)
        return 4;
    switch (opcode) {
    case 0x0f:
    case 0x70:
    case 0x71:
    case 0x72:
    case 0x73:
    case 0xa4:
    case 0xac:
    case 0xba:
    case 0xc2:
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return 1;
    default:
        return 0;
    }
}

static int immediate_bytes(const struct decoder *d) {
    if (d->is_vector) /* vector opcodes 80 to 8f are no branches */
        return d->map == MAP_0F3A || (d->map == MAP_0F && immediate_of_0f(d->opcode) == 1);
    if (d->map == MAP_ONE)
        return immediate_of_one(d);
    return d->map == MAP_0F ? immediate_of_0f(d->opcode) : d->map == MAP_0F3A;
}

/* --- effects --- */

static bool is_register(const struct decoder *d, uint8_t number) {
    return d->mod == 3 && d->base == number;
}

/* Returns true if the operand is an address relative to that register. */
static bool is_address_by(const struct decoder *d, uint8_t number) {
    return d->mod != 3 && !d->has_index && !d->is_relative && d->base == number;
}

static struct instruction effect(enum instruction_effect effect, int64_t value) {
    if (value != (int32_t)value)
        effect = EFFECT_LOSE_SP;
    return (struct instruction){.effect = effect, .value = (int32_t)value};
}

static struct instruction effect_if(bool holds, enum instruction_effect then) {
    return effect(holds ? then : EFFECT_NONE, 0);
}

/* Decodes add, or, adc, sbb, and, sub, xor with an immediate operand. */
static struct instruction arithmetic(const struct decoder *d) {
    const uint8_t what = d->reg & 7;
    if (!is_register(d, RSP) || what == 7)
        return effect(EFFECT_NONE, 0);
    if (!d->is_wide || (what != 0 && what != 5))
        return effect(EFFECT_LOSE_SP, 0);
    return effect(EFFECT_MOVE_SP, what ? -d->immediate : d->immediate);
}

static struct instruction move(const struct decoder *d, uint8_t to, uint8_t from) {
    if (to == RSP)
        return effect(d->is_wide && from == RBP ? EFFECT_SP_FROM_FP : EFFECT_LOSE_SP, 0);
    return effect_if(to == RBP && from == RSP && d->is_wide, EFFECT_FP_FROM_SP);
}

static struct instruction arch_instruction_load(const struct decoder *d) {
    if (d->mod == 3)
        return move(d, d->reg, d->base);
    if (d->reg == RBP && d->is_wide && is_address_by(d, RSP))
        return effect(EFFECT_LOAD_FP, d->displacement);
    return effect_if(d->reg == RSP, EFFECT_LOSE_SP);
}

static struct instruction load_address(const struct decoder *d) {
    const bool is_sum = d->is_wide && d->mod != 3;
    if (d->reg == RSP && is_sum && is_address_by(d, RSP))
        return effect(EFFECT_MOVE_SP, d->displacement);
    if (d->reg == RSP && is_sum && is_address_by(d, RBP))
        return effect(EFFECT_SP_FROM_FP, d->displacement);
    if (d->reg == RBP && is_sum && is_address_by(d, RSP))
        return effect(EFFECT_FP_FROM_SP, d->displacement);
    return effect_if(d->reg == RSP, EFFECT_LOSE_SP);
}

/* Decodes inc, dec, call, jmp, push. */
static struct instruction group_5(const struct decoder *d) {
    switch (d->reg & 7) {
    case 0:
    case 1:
        return effect_if(is_register(d, RSP), EFFECT_LOSE_SP);
    case 2:
        return effect(EFFECT_CALL, 0);
    case 4:
        return effect(EFFECT_JUMP_AWAY, d->is_relative);
    case 6:
        return effect(EFFECT_MOVE_SP, -8);
    default:
        return effect(EFFECT_UNKNOWN, 0);
    }
}

static struct instruction push_or_pop(const struct decoder *d) {
    const uint8_t number = (d->opcode & 7) | d->extend_base;
    const bool is_pop = d->opcode & 8;
    if (d->is_16_bit || (is_pop && number == RSP))
        return effect(EFFECT_LOSE_SP, 0);
    if (number == RBP)
        return effect(is_pop ? EFFECT_POP_FP : EFFECT_PUSH_FP, 0);
    return effect(EFFECT_MOVE_SP, is_pop ? 8 : -8);
}

/* Decodes opcodes 00 to 3f with a register as the destination. */
static struct instruction of_registers(const struct decoder *d) {
    const bool is_comparison = d->opcode >= 0x38;
    const bool to_reg = d->opcode & 2;
    if (is_comparison || (d->opcode & 7) > 3)
        return effect(EFFECT_NONE, 0);
    return effect_if(to_reg ? d->reg == RSP : is_register(d, RSP), EFFECT_LOSE_SP);
}

static struct instruction arch_instruction_jump(const struct decoder *d,
                                                enum instruction_effect what) {
    struct instruction instruction = {.effect = (uint8_t)what};
    instruction.target = (uintptr_t)d->at + (uintptr_t)d->immediate;
    return instruction;
}

static struct instruction effect_of_one(const struct decoder *d) {
    const uint8_t opcode = d->opcode;
    if (opcode < 0x40)
        return of_registers(d);
    if ((opcode & 0xf0) == 0x50)
        return push_or_pop(d);
    if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0)
        return arch_instruction_jump(d, EFFECT_BRANCH);
    switch (opcode) {
    case 0x68:
    case 0x6a:
    case 0x9c:
        return effect(EFFECT_MOVE_SP, -8);
    case 0x81:
    case 0x83:
        return arithmetic(d);
    case 0x89:
        return d->mod == 3 ? move(d, d->base, d->reg) : effect(EFFECT_NONE, 0);
    case 0x8b:
        return arch_instruction_load(d);
    case 0x8d:
        return load_address(d);
    case 0x8f: /* pop, or AMD's XOP */
        return (d->reg & 7) ? effect(EFFECT_UNKNOWN, 0) : effect(EFFECT_MOVE_SP, 8);
    case 0x9d:
        return effect(EFFECT_MOVE_SP, 8);
    case 0xb8 + RSP:
        return effect_if(!d->extend_base, EFFECT_LOSE_SP);
    case 0x87:
        return effect_if(is_register(d, RSP) || d->reg == RSP, EFFECT_LOSE_SP);
    case 0xc2:
    case 0xc3:
        return effect(EFFECT_RETURN, 0);
    case 0xc7:
        return effect_if(is_register(d, RSP), EFFECT_LOSE_SP);
    case 0xc8:
        return effect(EFFECT_LOSE_SP, 0);
    case 0xc9:
        return effect(EFFECT_LEAVE, 0);
    case 0xca:
    case 0xcb:
    case 0xcf:
        return effect(EFFECT_UNKNOWN, 0);
    case 0xcc:
    case 0xf4:
        return effect(EFFECT_STOP, 0);
    case 0xe8:
        return arch_instruction_jump(d, EFFECT_CALL);
    case 0xe9:
    case 0xeb:
        return arch_instruction_jump(d, EFFECT_JUMP);
    case 0xff:
        return group_5(d);
    default:
        return effect(EFFECT_NONE, 0);
    }
}

static struct instruction effect_of_0f(const struct decoder *d) {
    const uint8_t opcode = d->opcode;
    if ((opcode & 0xf0) == 0x80)
        return arch_instruction_jump(d, EFFECT_BRANCH);
    switch (opcode) {
    case 0x0b:
    case 0xb9:
    case 0xff:
        return effect(EFFECT_STOP, 0);
    case 0x1e:
        return effect_if(d->is_repeated && d->mod == 3 && (d->reg & 7) == 7, EFFECT_BEGIN);
    case 0x1f:
        return effect(EFFECT_PAD, 0);
    case 0xa0:
    case 0xa8:
        return effect(EFFECT_MOVE_SP, -8);
    case 0xa1:
    case 0xa9:
        return effect(EFFECT_MOVE_SP, 8);
    default:
        return effect(EFFECT_NONE, 0);
    }
}

static struct instruction effect_of(const struct decoder *d) {
    if (d->is_vector || d->map > MAP_0F)
        return effect(EFFECT_NONE, 0);
    return d->map == MAP_0F ? effect_of_0f(d) : effect_of_one(d);
}

struct instruction arch_instruction(const uint8_t *code, size_t available) {
    const size_t bytes = available < ARCH_INSTRUCTION_BYTES ? available : ARCH_INSTRUCTION_BYTES;
    struct decoder d = {.at = code, .end = code + bytes};
    read_opcode(&d);
    if (has_modrm(&d))
        read_modrm(&d);
    d.immediate = decoder_next_number(&d, immediate_bytes(&d));
    if (d.failed)
        return (struct instruction){.effect = EFFECT_UNKNOWN};
    struct instruction instruction = effect_of(&d);
    instruction.length = (uint8_t)(d.at - code);
    return instruction;
}

bool arch_follows_direct_call(uintptr_t address, uintptr_t low, uintptr_t *target) {
    enum { DIRECT_CALL_BYTES = 5 };
    const uint8_t *const next = (const uint8_t *)address;
    int32_t distance;
    if (address - low < DIRECT_CALL_BYTES || next[-DIRECT_CALL_BYTES] != 0xe8)
        return false;
    memcpy(&distance, next - sizeof distance, sizeof distance);
    *target = address + (uintptr_t)(intptr_t)distance;
    return true;
}

/* Recognizes ff /2 with a register or a memory operand. */
bool arch_follows_indirect_call(uintptr_t address, uintptr_t low) {
    const uint8_t *const next = (const uint8_t *)address;
    for (uintptr_t length = 2; length <= ARCH_CALL_BYTES && length <= address - low; length++) {
        if (*(next - length) != 0xff)
            continue;
        const struct instruction i = arch_instruction(next - length, length);
        if (i.length == length && i.effect == EFFECT_CALL)
            return true;
    }
    return false;
}

struct code_stub arch_stub(const uint8_t code[ARCH_STUB_BYTES]) {
    static const uint8_t begin[] = {0xf3, 0x0f, 0x1e, 0xfa};
    struct code_stub stub = {0, 0};
    int32_t distance;
    if (memcmp(code, begin, sizeof begin) == 0)
        code += sizeof begin;
    const bool is_prefixed = code[0] == 0xf2;
    code += is_prefixed;
    const int opcode_bytes = code[0] == 0xff ? 2 : 1;
    memcpy(&distance, code + opcode_bytes, sizeof distance);
    const uintptr_t there =
        (uintptr_t)code + (uintptr_t)opcode_bytes + 4 + (uintptr_t)(intptr_t)distance;
    if (code[0] == 0xe9)
        stub.target = there;
    if (code[0] == 0xff && code[1] == 0x25)
        stub.slot = there;
    return stub;
}
