/* Tests configuration files: the lines that are taken, and the warnings about the others. */
#include "unit.h"

#include "process/eligibility/config_file.h"

enum { MOST = 4, SAID_MOST = 16 };

static struct {
    const char *entries[MOST];
    struct config_lines lines;
    char text[16384];
    size_t said;
    char messages[SAID_MOST][512];
} t;

static void keep(void *arg, const char *message) {
    (void)arg;
    assert_true(t.said < SAID_MOST);
    snprintf(t.messages[t.said++], sizeof t.messages[0], "%s", message);
}

static void parse(const char *text, size_t size) {
    t.lines = (struct config_lines){.entries = t.entries, .most = MOST};
    t.said = 0;
    assert_true(size < sizeof t.text);
    memcpy(t.text, text, size);
    config_file_parse(t.text, size, "/x.conf", &t.lines, keep, NULL);
}

static void assert_entry(const char *text, const char *expected) {
    parse(text, strlen(text));
    if (t.said != 0 || t.lines.count != 1 || strcmp(t.entries[0], expected) != 0)
        fail_msg("%s: %s", text, t.said ? t.messages[0] : "another entry");
}

static void assert_refused(const char *text, size_t size, const char *expected) {
    parse(text, size);
    assert_int_equal(t.lines.count, 0);
    assert_int_equal(t.said, 1);
    assert_string_equal(t.messages[0], expected);
}

static void a_line_is_a_key_and_a_value(void **state) {
    (void)state;
    static const char name[] = "OTEL_SERVICE_NAME=a b";
    assert_entry("OTEL_SERVICE_NAME=a b", name);
    assert_entry("OTEL_SERVICE_NAME=a b\n", name);
    assert_entry("OTEL_SERVICE_NAME=a b\r\n", name);
    assert_entry(" \tOTEL_SERVICE_NAME \t=\t a b \t\n", name);
    assert_entry("OTEL_SERVICE_NAME=\"a b\"", name);
    assert_entry("OTEL_SERVICE_NAME = 'a b' \n\n", name);
    assert_entry("\n# OTEL_LOG_LEVEL=none\n ; x\n\t\nOTEL_SERVICE_NAME=a b", name);
    assert_entry("OTEL_SERVICE_NAME=", "OTEL_SERVICE_NAME=");
    assert_entry("OTEL_SERVICE_NAME=''", "OTEL_SERVICE_NAME=");
}

static void a_value_is_itself(void **state) {
    (void)state;
    assert_entry("OTEL_SERVICE_NAME=\" a # b \"", "OTEL_SERVICE_NAME= a # b ");
    assert_entry("OTEL_SERVICE_NAME=a # b", "OTEL_SERVICE_NAME=a # b");
    assert_entry("OTEL_SERVICE_NAME='say \"a\"'", "OTEL_SERVICE_NAME=say \"a\"");
    assert_entry("OTEL_SERVICE_NAME=a\"b\"", "OTEL_SERVICE_NAME=a\"b\"");
    assert_entry("OTEL_SERVICE_NAME=\"a\\nb$HOME\\\"", "OTEL_SERVICE_NAME=a\\nb$HOME\\");
    assert_entry("OTEL_RESOURCE_ATTRIBUTES=k=v,l=w", "OTEL_RESOURCE_ATTRIBUTES=k=v,l=w");
    assert_entry("OTEL_SERVICE_NAME=\xc3\xa4", "OTEL_SERVICE_NAME=\xc3\xa4");
}

/* Puts the last line first: as in the environment, the first entry of a name counts. */
static void the_last_line_comes_first(void **state) {
    (void)state;
    static const char text[] = "OTEL_LOG_LEVEL=1\nOTEL_LOG_LEVEL=2\nOTEL_LOG_LEVEL=3\n";
    parse(text, sizeof text - 1);
    assert_int_equal(t.lines.count, 3);
    assert_string_equal(t.entries[0], "OTEL_LOG_LEVEL=3");
    assert_string_equal(t.entries[1], "OTEL_LOG_LEVEL=2");
    assert_string_equal(t.entries[2], "OTEL_LOG_LEVEL=1");
}

static void both_forms_of_a_name_are_keys(void **state) {
    (void)state;
    assert_entry("OTEL_EXPORTER_OTLP_TIMEOUT=1", "OTEL_EXPORTER_OTLP_TIMEOUT=1");
    assert_entry("OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT=1", "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT=1");
    assert_entry("OTEL_CONFIG_FILE=/x", "OTEL_CONFIG_FILE=/x");
    parse("OTEL_EXPORTER_OTLP_PROFILES_X=1", 31);
    assert_int_equal(t.said, 1);
}

/* Repeats no value in the log: a value may be a secret. */
static void a_wrong_line_is_reported_with_file_and_number(void **state) {
    (void)state;
#define REFUSED(text, message) assert_refused(text, sizeof text - 1, "/x.conf, line " message)
    REFUSED("\n\nOTEL_SERVICE_NAME", "3 is not KEY=VALUE; the line is ignored");
    REFUSED("OTEL_NONE=secret", "1: OTEL_NONE is no setting of the profiler; the line is ignored");
    REFUSED("export OTEL_SERVICE_NAME=a",
            "1: export OTEL_SERVICE_NAME is no setting of the profiler; the line is ignored");
    REFUSED("=a", "1 is no setting of the profiler; the line is ignored");
    REFUSED("OTEL_SERVICE_NAME='a",
            "1: OTEL_SERVICE_NAME has a quote that is not closed; the line is ignored");
    REFUSED("OTEL_SERVICE_NAME=\"",
            "1: OTEL_SERVICE_NAME has a quote that is not closed; the line is ignored");
    REFUSED("OTEL_SERVICE_NAME=\"a\" # b", "1: OTEL_SERVICE_NAME has something behind the closing "
                                           "quote; the line is ignored");
    REFUSED("OTEL_SERVICE_NAME=a\\", "1: OTEL_SERVICE_NAME ends in a backslash, and lines are not "
                                     "continued; the line is ignored");
    REFUSED("OTEL_SERVICE_NAME=a\0b", "1 has a control character; the line is ignored");
    REFUSED("OTEL_SERVICE_NAME=a\x1b[31m", "1 has a control character; the line is ignored");
#undef REFUSED
}

static void a_line_has_4096_bytes_at_most(void **state) {
    (void)state;
    char line[CONFIG_LINE_MOST + 1];
    memset(line, 'x', sizeof line);
    memcpy(line, "OTEL_SERVICE_NAME=", 18);
    parse(line, CONFIG_LINE_MOST);
    assert_int_equal(t.lines.count, 1);
    assert_int_equal(strlen(t.entries[0]), CONFIG_LINE_MOST);
    assert_refused(line, sizeof line,
                   "/x.conf, line 1 is longer than 4096 bytes; the line is ignored");
}

static void lines_beyond_the_bounds_are_reported(void **state) {
    (void)state;
    static const char many[] = "OTEL_LOG_LEVEL=1\nOTEL_LOG_LEVEL=2\nOTEL_LOG_LEVEL=3\n"
                               "OTEL_LOG_LEVEL=4\nOTEL_LOG_LEVEL=5\n";
    parse(many, sizeof many - 1);
    assert_int_equal(t.lines.count, MOST);
    assert_string_equal(t.entries[MOST - 1], "OTEL_LOG_LEVEL=1");
    assert_string_equal(t.messages[0], "/x.conf, line 5: OTEL_LOG_LEVEL is one setting more than "
                                       "can be kept; the line is ignored");
    static const char wrong[] = "a\na\na\na\na\na\na\na\na\na\na\na\nOTEL_LOG_LEVEL=1";
    parse(wrong, sizeof wrong - 1);
    assert_int_equal(t.lines.count, 1);
    assert_int_equal(t.said, CONFIG_WRONG_MOST + 1);
    assert_string_equal(t.messages[CONFIG_WRONG_MOST],
                        "/x.conf has more such lines; they are ignored");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_key_and_a_value),
        cmocka_unit_test(a_value_is_itself),
        cmocka_unit_test(the_last_line_comes_first),
        cmocka_unit_test(both_forms_of_a_name_are_keys),
        cmocka_unit_test(a_wrong_line_is_reported_with_file_and_number),
        cmocka_unit_test(a_line_has_4096_bytes_at_most),
        cmocka_unit_test(lines_beyond_the_bounds_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
