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

static void store_begun(struct rule_cache *cache, uint64_t generation, struct rule_key key) {
    const struct rule rule = {.cfa_offset = 16, .cfa_kind = RULE_SP};
    atomic_store(&cache->entries[rule_place(key.address)],
                 rule_pack(rule) | rule_tag(generation, key));
    atomic_fetch_or(&cache->used, UINT32_C(1) << (rule_place(key.address) >> RULE_SLOT_BITS));
    rule_cache_end_store(cache);
}

/* Stops a store in the middle, as in a handler that is preempted, for each number of invalidations:
 * its rule is never found for a later library, not even for the moment before the handler could
 * take it back. */
static void a_store_that_lasts_for_many_unloads_is_never_used(void **state) {
    (void)state;
    const struct rule_key key = {0x7f1234567890, true};
    for (int unloads = 1; unloads < 4 * RULE_GENERATIONS; unloads++)
        for (int first = 0; first < RULE_GENERATIONS; first++) {
            static struct rule_cache cache;
            memset(&cache, 0, sizeof cache);
            for (int i = 0; i < first; i++)
                rule_cache_invalidate(&cache);
            const uint64_t generation = rule_cache_generation(&cache);
            assert_true(rule_cache_begin_store(&cache, generation));
            for (int i = 0; i < unloads; i++)
                rule_cache_invalidate(&cache);
            store_begun(&cache, generation, key);
            for (int i = 0; i < 2 * RULE_GENERATIONS; i++) {
                assert_false(cached(&cache, key.address, key.leaf));
                rule_cache_invalidate(&cache);
            }
        }
}

static void a_rule_of_a_former_round_is_not_stored(void **state) {
    (void)state;
    static struct rule_cache cache;
    const uint64_t generation = rule_cache_generation(&cache);
    for (int i = 0; i < RULE_PAUSE; i++)
        rule_cache_invalidate(&cache);
    assert_int_equal(rule_cache_generation(&cache), generation + RULE_GENERATIONS);
    assert_false(rule_cache_begin_store(&cache, generation));
    rule_cache_end_store(&cache);
}

static bool is_kept(struct rule_cache *cache, struct rule_key key) {
    const struct rule rule = {.cfa_offset = 16, .cfa_kind = RULE_SP};
    rule_cache_store(cache, rule_cache_generation(cache), key, rule);
    return cached(cache, key.address, key.leaf);
}

static void invalidate_until_pause(struct rule_cache *cache) {
    for (int i = 0; i < RULE_PAUSE; i++)
        rule_cache_invalidate(cache);
    assert_true(rule_generation_is_pause(rule_cache_generation(cache)));
}

/* A pause that waits for a writer ends with the first rule that is needed afterwards. */
static void rules_are_kept_again_after_a_long_store(void **state) {
    (void)state;
    static struct rule_cache cache;
    const struct rule_key key = {0x7f1234567890, true};
    const struct rule_key other = {0x7f1234567898, true};
    assert_true(rule_cache_begin_store(&cache, rule_cache_generation(&cache)));
    invalidate_until_pause(&cache);
    for (int i = 0; i < 3; i++) {
        assert_false(is_kept(&cache, other));
        rule_cache_invalidate(&cache);
    }
    store_begun(&cache, 0, key);
    assert_false(is_kept(&cache, other)); /* this miss ends the pause */
    assert_true(is_kept(&cache, other));
    assert_false(cached(&cache, key.address, key.leaf));
}

/* A fork copies a cache that other threads are changing; these threads are not in the child. */
static void a_forked_childs_cache_works(void **state) {
    (void)state;
    static struct rule_cache cache;
    const struct rule_key key = {0x7f1234567890, true};
    assert_true(is_kept(&cache, key));
    assert_true(rule_cache_begin_store(&cache, rule_cache_generation(&cache)));
    invalidate_until_pause(&cache);
    atomic_store(&cache.used, 0); /* as in the middle of the emptying */
    atomic_store(&cache.writers, RULE_EMPTYING);
    rule_cache_after_fork(&cache);
    assert_false(is_kept(&cache, key));
    assert_int_equal(rule_cache_generation(&cache), RULE_GENERATIONS);
    assert_int_equal(rule_cache_word(&cache, key), 0);
    assert_true(is_kept(&cache, key));
}

/* Forks when a writer has stored its word, but has not marked the page yet. */
static void a_word_whose_page_the_parent_did_not_mark_is_emptied_in_the_child(void **state) {
    (void)state;
    static struct rule_cache cache;
    const struct rule rule = {.cfa_offset = 16, .cfa_kind = RULE_SP};
    const struct rule_key key = {0x7f1234567890, true};
    const uint64_t generation = rule_cache_generation(&cache);
    assert_true(rule_cache_begin_store(&cache, generation));
    atomic_store(&cache.entries[rule_place(key.address)],
                 rule_pack(rule) | rule_tag(generation, key));
    rule_cache_after_fork(&cache);
    for (int i = 0; i < RULE_GENERATIONS; i++)
        rule_cache_invalidate(&cache);
    assert_int_equal(rule_cache_word(&cache, key), 0);
}

/* Pages without rules are not written: they would become resident. */
static void each_page_is_emptied_and_no_byte_beside(void **state) {
    enum { SLOTS = 1 << RULE_SLOT_BITS, PAGES = 1 << RULE_PAGE_BITS, BESIDE = 5 };
    static struct rule_cache cache;
    const struct rule rule = {.cfa_offset = 16, .cfa_kind = RULE_SP};
    (void)state;
    for (uintptr_t page = 0; page < PAGES; page++) {
        const struct rule_key key = {0x7f1234500000 | page << RULE_PAGE_SHIFT, true};
        for (size_t i = 0; i < (size_t)PAGES * SLOTS; i++)
            atomic_store(&cache.entries[i], BESIDE);
        rule_cache_store(&cache, rule_cache_generation(&cache), key, rule);
        assert_int_not_equal(rule_cache_word(&cache, key), 0);
        for (int i = 0; i < RULE_GENERATIONS; i++)
            rule_cache_invalidate(&cache);
        assert_int_equal(rule_cache_word(&cache, key), 0);
        assert_int_equal(atomic_load(&cache.used), 0);
        for (size_t i = 0; i < (size_t)PAGES * SLOTS; i++)
            assert_int_equal(atomic_load(&cache.entries[i]), i / SLOTS == page ? 0 : BESIDE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_that_fits_comes_back),
        cmocka_unit_test(invalidation_forgets_every_rule_for_good),
        cmocka_unit_test(no_rule_is_left_when_its_tag_returns),
        cmocka_unit_test(a_store_that_lasts_for_many_unloads_is_never_used),
        cmocka_unit_test(a_rule_of_a_former_round_is_not_stored),
        cmocka_unit_test(rules_are_kept_again_after_a_long_store),
        cmocka_unit_test(a_forked_childs_cache_works),
        cmocka_unit_test(a_word_whose_page_the_parent_did_not_mark_is_emptied_in_the_child),
        cmocka_unit_test(each_page_is_emptied_and_no_byte_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
