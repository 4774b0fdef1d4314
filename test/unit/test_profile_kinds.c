/* Tests the assumptions of the exporter, the console and `otelprof` about profile_kinds.def. */
#include "unit.h"

#include "harvest.h"

#include <string.h>

enum { MAX_SAMPLE_ATTRIBUTES = 16 }; /* sets of attributes are bits of an unsigned */

static void every_kind_has_one_or_two_values(void **state) {
    (void)state;
    unsigned counts[SAMPLE_KINDS] = {0};
    for (int i = 0; i < PROFILE_VALUES; i++) {
        const struct profile_value *const value = &profile_values[i];
        assert_int_equal(value->index, counts[value->kind]++);
        assert_true(i == 0 || value->kind >= profile_values[i - 1].kind);
    }
    for (int i = 0; i < SAMPLE_KINDS; i++)
        assert_in_range(counts[i], 1, SAMPLE_VALUES);
}

static void the_last_value_of_a_kind_is_shown(void **state) {
    (void)state;
    assert_string_equal(profile_shown(SAMPLE_CPU)->type, "samples");
    assert_string_equal(profile_shown_unit(SAMPLE_CPU), "nanoseconds");
    assert_string_equal(profile_shown(SAMPLE_ALLOC)->type, "alloc_space");
    assert_string_equal(profile_shown(SAMPLE_LIVE)->type, "inuse_space");
    assert_string_equal(profile_shown_unit(SAMPLE_LIVE), "bytes");
}

static void no_two_profiles_have_one_name(void **state) {
    (void)state;
    for (int i = 0; i < PROFILE_VALUES; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(profile_values[i].type, profile_values[k].type);
}

static void a_sample_has_room_for_its_attributes(void **state) {
    (void)state;
    assert_in_range(SAMPLE_ATTRIBUTES, 1, MAX_SAMPLE_ATTRIBUTES);
    for (int i = 0; i < SAMPLE_KINDS; i++)
        assert_int_equal(profile_kinds[i].attributes >> SAMPLE_ATTRIBUTES, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_one_or_two_values),
        cmocka_unit_test(the_last_value_of_a_kind_is_shown),
        cmocka_unit_test(no_two_profiles_have_one_name),
        cmocka_unit_test(a_sample_has_room_for_its_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
