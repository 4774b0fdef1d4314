/* Tests the step from bytes to a rule, with tables that no linker writes, but that a broken file
 * may have. */
#include "unit.h"

#include "unwind/cfi.h"

enum { FUNCTION = 64, BYTES = 256 };

/* Holds the tables of one function, which begins 64 bytes before them. */
struct tables {
    uint8_t bytes[BYTES];
    size_t size;
};

static void put(struct tables *t, const void *bytes, size_t size) {
    assert_true(t->size + size <= BYTES);
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

static void put_32(struct tables *t, int32_t value) {
    put(t, &value, sizeof value);
}

/* Makes tables: `align` is the data alignment factor in `align_size` bytes, `code` the function's
 * instructions. */
static struct tables make(const char *align, size_t align_size, const char *code, size_t size) {
    struct tables t = {.size = 0};
    put(&t, "\1\x1b\3\x3b\0\0\0\0", 8);
    put_32(&t, 1); /* the search table */
    put_32(&t, -FUNCTION);
    const int32_t cie = (int32_t)t.size + 4;
    const int32_t cie_size = (int32_t)(4 + 5 + align_size + 3 + 5);
    const int32_t fde = cie + 4 + cie_size;
    put_32(&t, fde);
    put_32(&t, cie_size);
    put(&t, "\0\0\0\0\1zR\0\1", 9);
    put(&t, align, align_size);
    put(&t, "\x10\1\x1b\x0c\7\x08\x90\1", 8); /* CFA = rsp + 8, return address at 1 factor */
    put_32(&t, (int32_t)(12 + 1 + size));
    put_32(&t, fde + 4 - cie);
    put_32(&t, -FUNCTION - (int32_t)t.size);
    put_32(&t, FUNCTION);
    put(&t, "", 1);
    put(&t, code, size);
    return t;
}

/* Returns the rule within the function, with the tables `shift` bytes behind an aligned address. */
static struct rule rule_of(const struct tables *t, size_t shift) {
    _Alignas(8) uint8_t place[BYTES + 8];
    memcpy(place + shift, t->bytes, t->size);
    const uintptr_t start = (uintptr_t)place + shift;
    const struct cfi_tables tables = {.header = start, .start = start, .end = start + t->size};
    return cfi_rule(&tables, start - FUNCTION + 4);
}

static void tables_need_not_be_aligned(void **state) {
    (void)state;
    const struct tables t = make("\x78", 1, "\x0e\x10\x86\2", 4);
    for (size_t shift = 0; shift < 8; shift++) {
        const struct rule rule = rule_of(&t, shift);
        assert_int_equal(rule.cfa_kind, RULE_SP);
        assert_int_equal(rule.cfa_offset, 16);
        assert_int_equal(rule.fp_kind, FP_AT_CFA);
        assert_int_equal(rule.fp_offset, -16);
    }
}

/* Reads offsets beyond 64 bits, which are nonsense: they count modulo 2^64. A result that does not
 * fit a rule gives none. */
static void offsets_wrap(void **state) {
    (void)state;
    static const char least[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f";
    static const char far[] = "\x12\7\xff\xff\xff\xff\xff\xff\xff\xff\xff\0";
    static const char sum[] = "\x0f\x15\x77\xff\xff\xff\xff\xff\xff\xff\xff\xff\0"
                              "\x23\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
    struct tables t = make(least, 10, "\x0e\x10", 2); /* the return address is not at CFA - 8 */
    assert_int_equal(rule_of(&t, 0).cfa_kind, RULE_EXPRESSION);
    t = make("\x78", 1, far, sizeof far - 1); /* -8 * (2^63 - 1) */
    assert_int_equal(rule_of(&t, 0).cfa_kind, RULE_SP);
    assert_int_equal(rule_of(&t, 0).cfa_offset, 8);
    t = make("\x78", 1, sum, sizeof sum - 1); /* twice 2^63 - 1 */
    assert_int_equal(rule_of(&t, 0).cfa_kind, RULE_SP);
    assert_int_equal(rule_of(&t, 0).cfa_offset, -2);
}

/* Reads the tables of SBCL's call_into_lisp, which has pushed the frame of another stack as its
 * own. */
static void the_frame_above_a_saved_rbp_is_a_rule(void **state) {
    (void)state;
    const struct tables t = make("\x78", 1, "\x0f\5\x76\0\x06\x23\x10\x86\2", 9);
    const struct rule rule = rule_of(&t, 0);
    assert_int_equal(rule.cfa_kind, RULE_AT_FP_16);
    assert_int_equal(rule.cfa_offset, 0);
    assert_int_equal(rule.fp_kind, FP_AT_CFA);
    assert_int_equal(rule.fp_offset, -16);
}

static int32_t offset_after(const char *code, size_t size) {
    const struct tables t = make("\x78", 1, code, size);
    const struct rule rule = rule_of(&t, 0);
    assert_int_equal(rule.cfa_kind, RULE_SP);
    return rule.cfa_offset;
}

/* Requests a rule for the address 4 bytes behind the function's beginning. */
static void a_row_holds_from_its_first_byte_on(void **state) {
    (void)state;
    assert_int_equal(offset_after("\x0e\x10\x44\x0e\x20", 5), 32);
    assert_int_equal(offset_after("\x0e\x10\x45\x0e\x20", 5), 16);
    assert_int_equal(offset_after("\x0e\x10\x43\x0e\x20\x42\x0e\x30", 8), 32);
}

static void a_remembered_row_is_recalled(void **state) {
    (void)state;
    assert_int_equal(offset_after("\x0e\x10\x0a\x0e\x40\x0b", 6), 16);
    assert_int_equal(offset_after("\x0a\x0e\x10\x0a\x0e\x40\x0b\x0b", 8), 8);
    const struct tables t = make("\x78", 1, "\x0e\x10\x0b", 3); /* no state was remembered before */
    assert_int_equal(rule_of(&t, 0).cfa_kind, RULE_EXPRESSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_need_not_be_aligned),
        cmocka_unit_test(offsets_wrap),
        cmocka_unit_test(the_frame_above_a_saved_rbp_is_a_rule),
        cmocka_unit_test(a_row_holds_from_its_first_byte_on),
        cmocka_unit_test(a_remembered_row_is_recalled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
