/* Tests that free(NULL) and realloc(NULL, n) find no object. They reach the live table where
 * another address uses the filter's counter of NULL, and the table marks an empty slot by the
 * address 0. */
#include "unit.h"

#include "heap/live_table.h"

static void null_is_not_in_the_live_table(void **state) {
    (void)state;
    struct live_table table;
    struct live_object taken;
    bool replaced;
    assert_true(live_table_start(&table, 1000));
    assert_false(live_table_remove(&table, 0, &taken));
    const struct live_object object = {.address = 16, .objects = 1, .size = 1, .stack = 1};
    assert_true(live_table_insert(&table, &object, &replaced));
    assert_int_equal(atomic_load(&table.count), 1);
    assert_false(live_table_remove(&table, 0, &taken));
    assert_int_equal(atomic_load(&table.count), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(null_is_not_in_the_live_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
