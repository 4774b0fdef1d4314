/* Tests foreign text inside of JSON and HTML. */
#include "unit.h"

#include "written_text.h"

#include <string.h>

static void assert_written(struct wire *text, const char *expected) {
    assert_false(text->failed);
    assert_int_equal(text->size, strlen(expected));
    assert_memory_equal(text->bytes, expected, text->size);
    wire_free(text);
}

static void pieces_stand_behind_each_other(void **state) {
    struct wire text = {.bytes = NULL};
    (void)state;
    for (int i = 0; i < 3; i++)
        text_add(&text, "%d %s;", i, "x");
    text_add(&text, "%s", "");
    assert_written(&text, "0 x;1 x;2 x;");
}

static void a_string_of_json_ends_where_it_should(void **state) {
    struct wire text = {.bytes = NULL};
    (void)state;
    text_add_json(&text, "a\"b\\c\n\x01\x7f/\xc3\xa4\xff\xc3");
    assert_written(&text, "\"a\\\"b\\\\c\\n\\u0001\\u007f/\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* Escapes U+009B, which begins a command of a terminal; U+202E and U+2066, which reverse the text
 * that follows; and U+2028, which ends a line. */
static void a_string_of_json_does_nothing_to_a_terminal(void **state) {
    struct wire text = {.bytes = NULL};
    (void)state;
    text_add_json(&text, "\x1b[2J\xc2\x9b"
                         "2J\xc2\xa0\xe2\x80\xae/\xe2\x81\xa6\xe2\x80\xa8\xf0\x9f\x98\x80\xe2\x80");
    assert_written(&text, "\"\\u001b[2J\\u009b2J\xc2\xa0\\u202e/\\u2066\\u2028\xf0\x9f\x98\x80"
                          "\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void prometheus_gets_no_control_characters(void **state) {
    struct wire text = {.bytes = NULL};
    (void)state;
    text_add_prometheus(&text, "a\"b\\c\n\t\x01/\xc3\xa4\xff");
    assert_written(&text, "\"a\\\"b\\\\c\\n\t\\\\x01/\xc3\xa4\\\\xff\"");
}

static void html_has_no_mark_of_others(void **state) {
    struct wire text = {.bytes = NULL};
    (void)state;
    text_add_html(&text, "<a href='x'>\"&amp;</a>\x1b[2J");
    assert_written(&text, "&#60;a href=&#39;x&#39;&#62;&#34;&#38;amp;&#60;/a&#62;\\x1b[2J");
}

static void seconds_have_nine_digits(void **state) {
    struct wire text = {.bytes = NULL};
    (void)state;
    text_add_seconds(&text, 12000000345);
    assert_written(&text, "12.000000345");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_stand_behind_each_other),
        cmocka_unit_test(a_string_of_json_ends_where_it_should),
        cmocka_unit_test(a_string_of_json_does_nothing_to_a_terminal),
        cmocka_unit_test(prometheus_gets_no_control_characters),
        cmocka_unit_test(html_has_no_mark_of_others),
        cmocka_unit_test(seconds_have_nine_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
