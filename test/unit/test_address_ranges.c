/* Compares ranges of addresses with a naive twin: separate, nested and overlapping ranges. */
#include "unit.h"

#include "poisson.h"
#include "symbolize/address_ranges.h"

enum { ROUNDS = 200, RANGES = 60, SPACE = 300 };

struct naive {
    uint64_t low, high;
};

/* Returns the range that begins last among those around the address. */
static int naive_find(const struct naive *all, uint64_t address) {
    int found = -1;
    for (int i = 0; i < RANGES; i++)
        if (all[i].low <= address && address < all[i].high &&
            (found < 0 || all[i].low > all[found].low))
            found = i;
    return found;
}

static void behave_like_an_array(void **state) {
    (void)state;
    uint64_t random = 11;
    for (int round = 0; round < ROUNDS; round++) {
        struct naive all[RANGES];
        struct address_ranges ranges = {0};
        for (int i = 0; i < RANGES; i++) {
            all[i].low = random_next(&random) % SPACE;
            all[i].high = all[i].low + random_next(&random) % (round % 2 ? 8 : SPACE);
            address_ranges_add(&ranges, all[i].low, all[i].high, (uint64_t)i);
        }
        address_ranges_sort(&ranges);
        for (uint64_t address = 0; address < 2 * SPACE; address++) {
            uint64_t value;
            const int expected = naive_find(all, address);
            assert_int_equal(address_ranges_find(&ranges, address, &value), expected >= 0);
            if (expected >= 0) /* of ranges with one beginning, any will do */
                assert_true(all[value].low == all[expected].low && address < all[value].high);
        }
        address_ranges_free(&ranges);
    }
}

static void nothing_is_in_none(void **state) {
    (void)state;
    struct address_ranges ranges = {0};
    uint64_t value;
    address_ranges_add(&ranges, 5, 5, 1);
    address_ranges_add(&ranges, 6, 5, 1);
    address_ranges_sort(&ranges);
    assert_false(address_ranges_find(&ranges, 5, &value));
    address_ranges_free(&ranges);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behave_like_an_array),
        cmocka_unit_test(nothing_is_in_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
