/* Compares a map of code, in which later pieces replace earlier ones, with a naive twin. */
#include "unit.h"

#include "poisson.h"
#include "symbolize/code_map.h"

enum { ROUNDS = 60, PIECES = 300, SPACE = 600, MANY = 100000 };

struct piece {
    uint64_t start, size;
};

static int naive_find(const struct piece *all, int count, uint64_t address) {
    for (int i = count - 1; i >= 0; i--)
        if (address >= all[i].start && address - all[i].start < all[i].size)
            return i;
    return -1;
}

static void check(struct code_map *map, const struct piece *all, int count) {
    for (uint64_t address = 0; address < 2 * SPACE; address++) {
        uint32_t value = 0;
        const int expected = naive_find(all, count, address);
        assert_int_equal(code_map_find(map, address, &value), expected >= 0);
        assert_int_equal(expected < 0 ? 0 : expected, value);
    }
}

/* Adds the pieces in one batch, in several, and in batches of one: a lookup ends a batch. */
static void the_last_piece_is_there(void **state) {
    (void)state;
    uint64_t random = 7;
    for (int round = 0; round < ROUNDS; round++) {
        struct piece all[PIECES];
        struct code_map map = {0};
        const int look = (int[]){PIECES, 50, 1}[round % 3];
        for (int i = 0; i < PIECES; i++) {
            all[i].start = random_next(&random) % SPACE;
            all[i].size = random_next(&random) % (round % 2 ? 8 : SPACE);
            assert_true(code_map_add(&map, all[i].start, all[i].size, (uint32_t)i));
            if ((i + 1) % look == 0 && (look > 1 || i < 20))
                check(&map, all, i + 1);
        }
        check(&map, all, PIECES);
        code_map_free(&map);
    }
}

static void ranges_without_code_are_left_out(void **state) {
    (void)state;
    struct code_map map = {0};
    uint32_t value;
    assert_true(code_map_add(&map, 5, 0, 1));
    assert_true(code_map_add(&map, UINT64_MAX - 1, 5, 1));
    assert_true(code_map_add(&map, 5, UINT64_MAX, 1));
    assert_true(code_map_add(&map, 5, (uint64_t)UINT32_MAX + 1, 1));
    assert_false(code_map_find(&map, 5, &value));
    assert_false(code_map_find(&map, UINT64_MAX, &value));
    assert_true(code_map_add(&map, 5, UINT32_MAX, 2));
    assert_true(code_map_find(&map, 5 + (uint64_t)UINT32_MAX - 1, &value) && value == 2);
    assert_false(code_map_find(&map, 5 + (uint64_t)UINT32_MAX, &value));
    code_map_free(&map);
}

/* Adds pieces until the map refuses one. No two of them overlap. */
static void pieces_without_end_end(void **state) {
    (void)state;
    struct code_map map = {0};
    uint32_t value;
    uint64_t added = 0;
    while (code_map_add(&map, 32 * added, 16, (uint32_t)added))
        added++;
    assert_true(added >= MAX_CODE_RANGES && added < MAX_CODE_RANGES + MANY);
    assert_true(code_map_find(&map, 32 * (added - 1) + 15, &value) && value == added - 1);
    assert_true(code_map_find(&map, 0, &value) && value == 0);
    assert_false(code_map_find(&map, 16, &value));
    code_map_free(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_piece_is_there),
        cmocka_unit_test(ranges_without_code_are_left_out),
        cmocka_unit_test(pieces_without_end_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
