/* Tests the decoding of instructions, and the rules that follow from them. */
#include "unit.h"

#include "arch_instruction.h"
#include "unwind/code_rule.h"

/* --- one instruction --- */

struct known {
    const char *what;
    uint8_t code[ARCH_INSTRUCTION_BYTES];
    uint8_t length;
    uint8_t effect;
    int32_t value;
};

static const struct known known[] = {
    {"push %rbp", {0x55}, 1, EFFECT_PUSH_FP, 0},
    {"push %r13", {0x41, 0x55}, 2, EFFECT_MOVE_SP, -8},
    {"pop %rbp", {0x5d}, 1, EFFECT_POP_FP, 0},
    {"pop %r12", {0x41, 0x5c}, 2, EFFECT_MOVE_SP, 8},
    {"pop %rsp", {0x5c}, 1, EFFECT_LOSE_SP, 0},
    {"mov %rsp,%rbp", {0x48, 0x89, 0xe5}, 3, EFFECT_FP_FROM_SP, 0},
    {"mov %rsp,%rbp, the other way", {0x48, 0x8b, 0xec}, 3, EFFECT_FP_FROM_SP, 0},
    {"mov %esp,%ebp", {0x89, 0xe5}, 2, EFFECT_NONE, 0},
    {"mov %rbp,%rsp", {0x48, 0x89, 0xec}, 3, EFFECT_SP_FROM_FP, 0},
    {"lea -0x28(%rbp),%rsp", {0x48, 0x8d, 0x65, 0xd8}, 4, EFFECT_SP_FROM_FP, -40},
    {"lea 0x10(%rsp),%rbp", {0x48, 0x8d, 0x6c, 0x24, 0x10}, 5, EFFECT_FP_FROM_SP, 16},
    {"lea 0x8(%rsp),%rsp", {0x48, 0x8d, 0x64, 0x24, 8}, 5, EFFECT_MOVE_SP, 8},
    {"lea 0x8(%rsp,%rax),%rsp", {0x48, 0x8d, 0x64, 0x04, 8}, 5, EFFECT_LOSE_SP, 0},
    {"mov 0x10(%rsp),%rbp", {0x48, 0x8b, 0x6c, 0x24, 0x10}, 5, EFFECT_LOAD_FP, 16},
    {"mov 0x10(%rax),%rbp", {0x48, 0x8b, 0x68, 0x10}, 4, EFFECT_NONE, 0},
    {"sub $0x18,%rsp", {0x48, 0x83, 0xec, 0x18}, 4, EFFECT_MOVE_SP, -24},
    {"sub $0x1000,%rsp", {0x48, 0x81, 0xec, 0, 0x10, 0, 0}, 7, EFFECT_MOVE_SP, -4096},
    {"add $-0x80,%rsp", {0x48, 0x83, 0xc4, 0x80}, 4, EFFECT_MOVE_SP, -128},
    {"cmp $0x18,%rsp", {0x48, 0x83, 0xfc, 0x18}, 4, EFFECT_NONE, 0},
    {"and $-0x20,%rsp", {0x48, 0x83, 0xe4, 0xe0}, 4, EFFECT_LOSE_SP, 0},
    {"sub $0x18,%r12", {0x49, 0x83, 0xec, 0x18}, 4, EFFECT_NONE, 0},
    {"sub %rax,%rsp", {0x48, 0x29, 0xc4}, 3, EFFECT_LOSE_SP, 0},
    {"mov %rsp,%rdi", {0x48, 0x89, 0xe7}, 3, EFFECT_NONE, 0},
    {"leave", {0xc9}, 1, EFFECT_LEAVE, 0},
    {"ret", {0xc3}, 1, EFFECT_RETURN, 0},
    {"repz ret", {0xf3, 0xc3}, 2, EFFECT_RETURN, 0},
    {"ret $0x10", {0xc2, 0x10, 0}, 3, EFFECT_RETURN, 0},
    {"call *%rax", {0xff, 0xd0}, 2, EFFECT_CALL, 0},
    {"call *0x10(%r12)", {0x41, 0xff, 0x54, 0x24, 0x10}, 5, EFFECT_CALL, 0},
    {"jmp *0x0(%rip)", {0xff, 0x25, 0, 0, 0, 0}, 6, EFFECT_JUMP_AWAY, 1},
    {"notrack jmp *%rax", {0x3e, 0xff, 0xe0}, 3, EFFECT_JUMP_AWAY, 0},
    {"push 0x8(%rax)", {0xff, 0x70, 8}, 3, EFFECT_MOVE_SP, -8},
    {"push $1", {0x6a, 1}, 2, EFFECT_MOVE_SP, -8},
    {"endbr64", {0xf3, 0x0f, 0x1e, 0xfa}, 4, EFFECT_BEGIN, 0},
    {"nopw 0x0(%rax,%rax)", {0x66, 0x0f, 0x1f, 0x44, 0, 0}, 6, EFFECT_PAD, 0},
    {"ud2", {0x0f, 0x0b}, 2, EFFECT_STOP, 0},
    {"int3", {0xcc}, 1, EFFECT_STOP, 0},
    {"movabs $0,%rax", {0x48, 0xb8}, 10, EFFECT_NONE, 0},
    {"mov $0x1234,%ax", {0x66, 0xb8, 0x34, 0x12}, 4, EFFECT_NONE, 0},
    {"testb $1,(%rax)", {0xf6, 0, 1}, 3, EFFECT_NONE, 0},
    {"negq (%rax)", {0x48, 0xf7, 0x18}, 3, EFFECT_NONE, 0},
    {"testl $1,(%rax)", {0xf7, 0, 1}, 6, EFFECT_NONE, 0},
    {"mov (%rip),%eax", {0x8b, 0x05}, 6, EFFECT_NONE, 0},
    {"movups 0x10(%rsp,%rbx,8),%xmm1", {0x0f, 0x10, 0x4c, 0xdc, 0x10}, 5, EFFECT_NONE, 0},
    {"palignr $4,%xmm0,%xmm1", {0x66, 0x0f, 0x3a, 0x0f, 0xc8, 4}, 6, EFFECT_NONE, 0},
    {"vzeroupper", {0xc5, 0xf8, 0x77}, 3, EFFECT_NONE, 0},
    {"vpshufd $1,%xmm0,%xmm0", {0xc5, 0xf9, 0x70, 0xc0, 1}, 5, EFFECT_NONE, 0},
    {"vpalignr $1,%ymm0,%ymm0,%ymm0", {0xc4, 0xe3, 0x7d, 0x0f, 0xc0, 1}, 6, EFFECT_NONE, 0},
    {"vmovdqu64 0x40(%rsi),%zmm0", {0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x46, 1}, 7, EFFECT_NONE, 0},
    {"vprotd $14,%xmm4,%xmm5", {0x8f, 0xe8, 0x78, 0xc2, 0xec, 14}, 2, EFFECT_UNKNOWN, 0},
    {"push %es, in 32-bit code", {0x06}, 0, EFFECT_UNKNOWN, 0},
};

static void instructions_are_known(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct known *const k = &known[i];
        const struct instruction is = arch_instruction(k->code, sizeof k->code);
        if (is.length != k->length || is.effect != k->effect || is.value != k->value)
            fail_msg("%s: %d bytes, effect %d, value %d", k->what, is.length, is.effect, is.value);
    }
}

static void jumps_and_calls_have_targets(void **state) {
    (void)state;
    static const uint8_t code[] = {0xeb, 0x10, 0x0f, 0x84, 0x00, 0x01, 0,
                                   0,    0xe8, 0xf3, 0xff, 0xff, 0xff};
    assert_int_equal(arch_instruction(code, 13).target, (uintptr_t)code + 18);
    assert_int_equal(arch_instruction(code + 2, 11).target, (uintptr_t)code + 8 + 256);
    assert_int_equal(arch_instruction(code + 8, 5).target, (uintptr_t)code);
    uintptr_t target;
    assert_true(arch_follows_direct_call((uintptr_t)code + 13, (uintptr_t)code, &target));
    assert_int_equal(target, (uintptr_t)code);
    assert_false(arch_follows_direct_call((uintptr_t)code + 13, (uintptr_t)code + 9, &target));
    assert_false(arch_follows_indirect_call((uintptr_t)code + 13, (uintptr_t)code));
}

static void an_instruction_that_is_cut_short_is_unknown(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (size_t bytes = 0; bytes < known[i].length; bytes++)
            assert_true(arch_instruction(known[i].code, bytes).length <= bytes);
}

/* --- the rule at each instruction of a function --- */

struct step {
    uint8_t at;
    uint8_t kind;
    int32_t cfa;
    uint8_t fp_kind;
    int16_t fp;
};

static void check(const uint8_t *code, size_t size, const struct step *steps, size_t count) {
    const struct code_view view = {(uintptr_t)code, (uintptr_t)code + size, false};
    for (size_t i = 0; i < count; i++) {
        const struct step *const s = &steps[i];
        const struct rule rule = code_rule(&view, (uintptr_t)code + s->at);
        if (rule.cfa_kind != s->kind || rule.cfa_offset != s->cfa || rule.fp_kind != s->fp_kind ||
            rule.fp_offset != s->fp)
            fail_msg("at %d: kind %d, cfa %d, fp %d at %d", s->at, rule.cfa_kind, rule.cfa_offset,
                     rule.fp_kind, rule.fp_offset);
    }
}
#define CHECK(code, ...)                                                                           \
    check(code, sizeof(code), (const struct step[]){__VA_ARGS__},                                  \
          sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step))

/* endbr64; push %rbp; mov %rsp,%rbp; push %rbx; sub $8,%rsp; nop; mov -8(%rbp),%rbx; leave; ret */
static void prologue_and_epilogue_with_a_frame_record(void **state) {
    (void)state;
    static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x53, 0x48,
                                   0x83, 0xec, 0x08, 0x90, 0x48, 0x8b, 0x5d, 0xf8, 0xc9, 0xc3};
    CHECK(code, {0, RULE_CODE_SP, 8, FP_SAME, 0}, {4, RULE_CODE_SP, 8, FP_SAME, 0},
          {5, RULE_CODE_SP, 16, FP_SAME, 0}, {8, RULE_CODE_FP, 16, FP_AT_CFA, -16},
          {13, RULE_CODE_FP, 16, FP_AT_CFA, -16}, {18, RULE_CODE_FP, 16, FP_AT_CFA, -16},
          {19, RULE_CODE_SP, 8, FP_SAME, 0});
}

/* push %rbx; test %edi,%edi; je out; call elsewhere; out: pop %rbx; ret; call abort; int3 */
static void a_leaf_without_a_frame_record(void **state) {
    (void)state;
    static const uint8_t code[] = {0x53, 0x85, 0xff, 0x74, 0x05, 0xe8, 0, 0, 0,
                                   0,    0x5b, 0xc3, 0xe8, 0,    0,    0, 0, 0xcc};
    CHECK(code, {0, RULE_CODE_SP, 8, FP_SAME, 0}, {1, RULE_CODE_SP, 16, FP_SAME, 0},
          {5, RULE_CODE_SP, 16, FP_SAME, 0}, {10, RULE_CODE_SP, 16, FP_SAME, 0},
          {11, RULE_CODE_SP, 8, FP_SAME, 0}, {12, RULE_RECORD, 0, FP_LOST, 0});
}

/* `code`: sub $24,%rsp; call die; then another function: push %rbp; mov %rsp,%rbp; pop %rbp; ret.
 * `padded`: call die; a nop that aligns; ret */
static void another_function_follows_a_call_that_does_not_return(void **state) {
    (void)state;
    static const uint8_t code[] = {0x48, 0x83, 0xec, 0x18, 0xe8, 0,    0,   0,
                                   0,    0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3};
    static const uint8_t padded[] = {0xe8, 0, 0, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0, 0, 0xc3};
    CHECK(code, {4, RULE_RECORD, 0, FP_LOST, 0});
    CHECK(padded, {0, RULE_RECORD, 0, FP_LOST, 0});
}

/* Distinguishes jumps: jmp *%rax in a switch is no tail call; jmp *0(%rip) is one, and so is a jump
 * after an epilogue. A jump to itself has no rule. */
static void jumps_to_somewhere(void **state) {
    (void)state;
    static const uint8_t in_switch[] = {0x3e, 0xff, 0xe0};
    static const uint8_t stub[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0};
    static const uint8_t tail[] = {0x48, 0x83, 0xc4, 0x08, 0x5d, 0xff, 0xe0};
    static const uint8_t forever[] = {0xeb, 0xfe};
    CHECK(in_switch, {0, RULE_RECORD, 0, FP_SAME, 0});
    CHECK(stub, {0, RULE_CODE_SP, 8, FP_SAME, 0});
    CHECK(tail, {0, RULE_CODE_SP, 24, FP_AT_CFA, -16});
    CHECK(forever, {0, RULE_RECORD, 0, FP_LOST, 0});
}

/* sub %rax,%rsp (a variable size); lea -8(%rbp),%rsp; pop %rbx; pop %rbp; ret */
static void a_frame_of_variable_size_is_left_by_its_frame_pointer(void **state) {
    (void)state;
    static const uint8_t code[] = {0x48, 0x29, 0xc4, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3};
    CHECK(code, {0, RULE_CODE_FP, 16, FP_AT_CFA, -16}, {3, RULE_CODE_FP, 16, FP_AT_CFA, -16},
          {7, RULE_CODE_SP, 24, FP_AT_CFA, -16});
    static const uint8_t never_set[] = {0x48, 0x29, 0xc4, 0xc3};
    CHECK(never_set, {0, RULE_RECORD, 0, FP_SAME, 0});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_are_known),
        cmocka_unit_test(jumps_and_calls_have_targets),
        cmocka_unit_test(an_instruction_that_is_cut_short_is_unknown),
        cmocka_unit_test(prologue_and_epilogue_with_a_frame_record),
        cmocka_unit_test(a_leaf_without_a_frame_record),
        cmocka_unit_test(another_function_follows_a_call_that_does_not_return),
        cmocka_unit_test(jumps_to_somewhere),
        cmocka_unit_test(a_frame_of_variable_size_is_left_by_its_frame_pointer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
