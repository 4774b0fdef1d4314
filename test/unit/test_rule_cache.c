/* Tests that rules are kept in one word each, and that no rule outlives the library it was for. */
#include "unit.h"

#include "unwind/rule_cache.h"

static void every_rule_that_fits_comes_back(void **state) {
    (void)state;
    for (int32_t cfa = -65536; cfa < 65536; cfa += 8)
        for (int rbp = -248; rbp <= 0; rbp += 24) {
            const struct rule rule = {.cfa_offset = cfa,
                                      .fp_offset = (int16_t)rbp,
                                      .cfa_kind = (uint8_t)((cfa / 8) & 7),
                                      .fp_kind = (uint8_t)(rbp & 3),
                                      .after_call = (uint8_t)(cfa / 8) & 1};
            assert_true(rule_equal(rule_unpack(rule_pack(rule)), rule));
        }
    const struct rule too_far = {.cfa_offset = 65536, .cfa_kind = RULE_SP};
    const struct rule odd = {.cfa_offset = 12, .cfa_kind = RULE_SP};
    const struct rule far_rbp = {.fp_offset = -256, .cfa_kind = RULE_SP};
    assert_false(rule_equal(rule_unpack(rule_pack(too_far)), too_far));
    assert_false(rule_equal(rule_unpack(rule_pack(odd)), odd));
    assert_false(rule_equal(rule_unpack(rule_pack(far_rbp)), far_rbp));
}

static bool cached(struct rule_cache *cache, uintptr_t address, bool leaf) {
    const struct rule_key key = {address, leaf};
    return rule_word_is_for(rule_cache_word(cache, key), rule_cache_generation(cache), key);
}

static void invalidation_forgets_every_rule_for_good(void **state) {
    (void)state;
    static struct rule_cache cache;
    const struct rule rule = {.cfa_offset = 16, .cfa_kind = RULE_SP};
    const uintptr_t pc = 0x7f1234567890;
    for (int round = 0; round < 40; round++) { /* beyond the generation's four bits */
        assert_false(cached(&cache, pc, true));
        rule_cache_store(&cache, rule_cache_generation(&cache), (struct rule_key){pc, true}, rule);
        assert_true(cached(&cache, pc, true));
        assert_false(cached(&cache, pc, false));
        for (int bit = 0; bit < 47; bit++)
            assert_false(cached(&cache, pc ^ UINT64_C(1) << bit, true));
        rule_cache_invalidate(&cache);
    }
    const uint64_t before = rule_cache_generation(&cache);
    rule_cache_invalidate(&cache);
    rule_cache_store(&cache, before, (struct rule_key){pc, true},
                     rule); /* computed before the library was unloaded */
    assert_false(cached(&cache, pc, true));
}

/* Tags repeat: rules of the tag's former use are gone by then. */
static void no_rule_is_left_when_its_tag_returns(void **state) {
    (void)state;
    static struct rule_cache cache;
    const struct rule rule = {.cfa_offset = 16, .cfa_kind = RULE_SP};
    const struct rule_key key = {0x7f1234567890, true};
    for (int first = 0; first < 16; first++) {
        rule_cache_store(&cache, rule_cache_generation(&cache), key, rule);
        for (int i = 0; i < 15; i++)
            rule_cache_invalidate(&cache);
        assert_int_equal(rule_cache_word(&cache, key), 0);
    }
}

/* Pages without rules are not written: they would become resident. */
static void each_page_is_emptied_and_no_byte_beside(void **state) {
    static struct {
        struct rule_cache cache;
        uint64_t behind[1 << RULE_SLOT_BITS];
    } memory;
    const struct rule rule = {.cfa_offset = 16, .cfa_kind = RULE_SP};
    (void)state;
    memset(memory.behind, 0xff, sizeof memory.behind);
    for (uintptr_t page = 0; page < 1 << RULE_PAGE_BITS; page++) {
        const struct rule_key key = {0x7f1234500000 | page << RULE_PAGE_SHIFT, true};
        rule_cache_store(&memory.cache, rule_cache_generation(&memory.cache), key, rule);
        assert_int_not_equal(rule_cache_word(&memory.cache, key), 0);
        for (int i = 0; i < 8; i++)
            rule_cache_invalidate(&memory.cache);
        assert_int_equal(rule_cache_word(&memory.cache, key), 0);
        assert_int_equal(atomic_load(&memory.cache.used), 0);
    }
    for (size_t i = 0; i < sizeof memory.behind / sizeof *memory.behind; i++)
        assert_true(memory.behind[i] == UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_that_fits_comes_back),
        cmocka_unit_test(invalidation_forgets_every_rule_for_good),
        cmocka_unit_test(no_rule_is_left_when_its_tag_returns),
        cmocka_unit_test(each_page_is_emptied_and_no_byte_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
