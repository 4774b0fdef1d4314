/* Tests that foreign text stays within its line, whatever it is. */
#include "unit.h"

#include "shown_text.h"

#include <string.h>

static const char *shown(const char *text, size_t room) {
    static char result[1024];
    memset(result, '#', sizeof result);
    const size_t size = shown_text(result, room, text, SIZE_MAX);
    assert_true(size <= room);
    assert_int_equal(result[size], '#'); /* nothing is written behind the text */
    result[size] = 0;
    return result;
}

static void ordinary_text_is_shown_as_it_is(void **state) {
    (void)state;
    static const char *const texts[] = {"", "http://localhost:4318", "a\\b \"c\" %s",
                                        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(shown(texts[i], 100), texts[i]);
}

static void nothing_begins_a_line_or_commands_the_terminal(void **state) {
    (void)state;
    assert_string_equal(shown("a\nb\r\tc", 100), "a\\x0ab\\x0d\\x09c");
    assert_string_equal(shown("\x1b[2J\x7f", 100), "\\x1b[2J\\x7f");
    assert_string_equal(shown("\xc2\x9b"
                              "2J",
                              100),
                        "\\xc2\\x9b2J"); /* CSI of Latin-1 */
    assert_string_equal(shown("\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6", 100),
                        "\\xe2\\x80\\xae\\xe2\\x80\\xa8\\xe2\\x81\\xa6");
    assert_string_equal(shown("\xff\xc3", 100), "\\xff\\xc3");
}

static void shown_text_is_shown_unchanged(void **state) {
    (void)state;
    char once[100];
    strcpy(once, shown("a\nb\x1b\xff", sizeof once));
    assert_string_equal(shown(once, sizeof once), once);
}

static void long_text_is_cut(void **state) {
    (void)state;
    assert_string_equal(shown("abcdefgh", 8), "abcdefgh");
    assert_string_equal(shown("abcdefghi", 8), "abcde...");
    assert_string_equal(shown("ab\n\n\n", 10), "ab\\x0a...");
    assert_string_equal(shown("abcd\xe2\x82\xac..", 8), "abcd...");
    assert_string_equal(shown("abc", 2), "..");
    assert_string_equal(shown("abc", 0), "");
}

static void a_slice_is_read_no_further(void **state) {
    (void)state;
    char result[16];
    assert_int_equal(shown_text(result, sizeof result, "\xe2\x82\xac", 2), 8);
    assert_memory_equal(result, "\\xe2\\x82", 8);
    assert_int_equal(shown_text(result, sizeof result, "abc", 2), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_text_is_shown_as_it_is),
        cmocka_unit_test(nothing_begins_a_line_or_commands_the_terminal),
        cmocka_unit_test(shown_text_is_shown_unchanged),
        cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(a_slice_is_read_no_further),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
