/* Tests when the next attempt is due to open a file of /proc that the kernel has refused. */
#include "unit.h"

#include "clock.h"
#include "refused_file.h"

static const uint64_t START = 1000 * NANO_PER_SECOND;

static void a_refusal_pauses_attempts(void **state) {
    (void)state;
    struct refused_file refused = {0};
    assert_false(refused_file_pauses(&refused, START));
    refused_file_note(&refused, -EACCES, START);
    assert_true(refused_file_pauses(&refused, START + 99 * NANO_PER_MILLI));
    assert_false(refused_file_pauses(&refused, START + 100 * NANO_PER_MILLI));
    refused_file_note(&refused, -EPERM, START + 100 * NANO_PER_MILLI);
    assert_true(refused_file_pauses(&refused, START + 299 * NANO_PER_MILLI));
    assert_false(refused_file_pauses(&refused, START + 300 * NANO_PER_MILLI));
}

static void pauses_grow_up_to_a_minute(void **state) {
    (void)state;
    struct refused_file refused = {0};
    uint64_t now = START;
    int attempts = 0;
    for (; now < START + 3600 * NANO_PER_SECOND; now += 10 * NANO_PER_MILLI)
        if (!refused_file_pauses(&refused, now)) {
            refused_file_note(&refused, -EACCES, now);
            attempts++;
        }
    assert_in_range(attempts, 60, 80);
    assert_false(refused_file_pauses(&refused, now + 60 * NANO_PER_SECOND));
}

/* Gets errors that concern one file alone, such as that of a thread that has ended: another file
 * may be opened. */
static void another_error_is_no_refusal(void **state) {
    (void)state;
    struct refused_file refused = {0};
    refused_file_note(&refused, -ENOENT, START);
    refused_file_note(&refused, -EMFILE, START);
    assert_false(refused_file_pauses(&refused, START));
}

static void a_success_ends_the_pauses(void **state) {
    (void)state;
    struct refused_file refused = {0};
    for (int i = 0; i < 9; i++)
        refused_file_note(&refused, -EACCES, START);
    refused_file_note(&refused, 3, START);
    assert_false(refused_file_pauses(&refused, START));
    refused_file_note(&refused, -EACCES, START);
    assert_false(refused_file_pauses(&refused, START + 100 * NANO_PER_MILLI));
}

static void a_change_of_rights_ends_the_pause_at_once(void **state) {
    (void)state;
    struct refused_file refused = {0};
    for (int i = 0; i < 9; i++)
        refused_file_note(&refused, -EACCES, START);
    assert_true(refused_file_pauses(&refused, START + NANO_PER_SECOND));
    refused_files_ask_again();
    assert_false(refused_file_pauses(&refused, START + NANO_PER_SECOND));
    /* the next refusal pauses for the shortest time */
    refused_file_note(&refused, -EACCES, START + NANO_PER_SECOND);
    assert_true(refused_file_pauses(&refused, START + NANO_PER_SECOND));
    assert_false(refused_file_pauses(&refused, START + NANO_PER_SECOND + 100 * NANO_PER_MILLI));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_pauses_attempts),
        cmocka_unit_test(pauses_grow_up_to_a_minute),
        cmocka_unit_test(another_error_is_no_refusal),
        cmocka_unit_test(a_success_ends_the_pauses),
        cmocka_unit_test(a_change_of_rights_ends_the_pause_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
