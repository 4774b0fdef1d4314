/* Tests the meaning of a value in a configuration file: references to variables, by the
 * specification's own table, and types. */
#include "unit.h"

#include "declare/scalar.h"
#include "declare/substitution.h"

/* --- substitution --- */

static const char *variable(const char *name) {
    static const char *const variables[][2] = {{"STRING_VALUE", "value"},
                                               {"BOOL_VALUE", "true"},
                                               {"FLOAT_VALUE", "1.1"},
                                               {"INVALID_MAP_VALUE", "value\nkey:value"},
                                               {"DO_NOT_REPLACE_ME", "Never use this value"},
                                               {"REPLACE_ME", "${DO_NOT_REPLACE_ME}"},
                                               {"VALUE_WITH_ESCAPE", "value$$"},
                                               {"EMPTY", ""},
                                               {"env", "an environment"}};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (strcmp(variables[i][0], name) == 0)
            return variables[i][1];
    return NULL;
}

static void references_are_replaced_as_the_specification_has_it(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"${STRING_VALUE}", "value"},
        {"${env:STRING_VALUE}", "value"},
        {"${INVALID_MAP_VALUE}", "value\nkey:value"},
        {"foo ${STRING_VALUE} ${FLOAT_VALUE}", "foo value 1.1"},
        {"${UNDEFINED_KEY}", ""},
        {"${UNDEFINED_KEY:-fallback}", "fallback"},
        {"${EMPTY:-fallback}", "fallback"},
        {"${STRING_VALUE:-fallback}", "value"},
        {"${env:UNDEFINED_KEY:-fall:-back}", "fall:-back"},
        {"${env:-x}", "an environment"},
        {"${UNDEFINED_KEY:-}", ""},
        {"${REPLACE_ME}", "${DO_NOT_REPLACE_ME}"},
        {"${UNDEFINED_KEY:-${STRING_VALUE}}", "${STRING_VALUE}"},
        {"$${STRING_VALUE}", "${STRING_VALUE}"},
        {"$$${STRING_VALUE}", "$value"},
        {"$$$${STRING_VALUE}", "$${STRING_VALUE}"},
        {"$${STRING_VALUE:-fallback}", "${STRING_VALUE:-fallback}"},
        {"$${STRING_VALUE:-${STRING_VALUE}}", "${STRING_VALUE:-value}"},
        {"${UNDEFINED_KEY:-$${UNDEFINED_KEY}}", "${UNDEFINED_KEY:-${UNDEFINED_KEY}}"},
        {"${VALUE_WITH_ESCAPE}", "value$$"},
        {"a $$ b", "a $ b"},
        {"a $ b", "a $ b"},
        {"${}", "${}"},
        {"${STRING_VALUE", "${STRING_VALUE"},
        {"$", "$"},
        {"", ""}};
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(substitute(cases[i][0], variable, out, sizeof out), SUBSTITUTED);
        assert_string_equal(out, cases[i][1]);
    }
}

static void malformed_references_are_refused(void **state) {
    (void)state;
    static const char *const cases[] = {
        "${STRING_VALUE:?error}", "${1API_KEY}", "${API_$KEY}", "${sys:x}", "${ X}", "${env:}",
        "${STRING VALUE}"};
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(substitute(cases[i], variable, out, sizeof out), SUBSTITUTION_MALFORMED);
}

static void a_result_that_does_not_fit_is_too_long(void **state) {
    (void)state;
    char out[6];
    assert_int_equal(substitute("${STRING_VALUE}", variable, out, 6), SUBSTITUTED);
    assert_int_equal(substitute("${STRING_VALUE}", variable, out, 5), SUBSTITUTION_TOO_LONG);
    assert_int_equal(substitute("12345", variable, out, 5), SUBSTITUTION_TOO_LONG);
    assert_int_equal(substitute("", variable, out, 1), SUBSTITUTED);
}

/* --- types --- */

static void plain_scalars_have_the_types_of_yaml(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum scalar_type type;
    } cases[] = {{"", SCALAR_NULL},        {"~", SCALAR_NULL},
                 {"null", SCALAR_NULL},    {"true", SCALAR_BOOL},
                 {"FALSE", SCALAR_BOOL},   {"yes", SCALAR_TEXT},
                 {"tRue", SCALAR_TEXT},    {"0", SCALAR_INT},
                 {"-12", SCALAR_INT},      {"+7", SCALAR_INT},
                 {"0x1F", SCALAR_INT},     {"0o17", SCALAR_INT},
                 {"0x", SCALAR_TEXT},      {"0o8", SCALAR_TEXT},
                 {"1.5", SCALAR_DOUBLE},   {"1e3", SCALAR_DOUBLE},
                 {".5", SCALAR_DOUBLE},    {"1.", SCALAR_DOUBLE},
                 {".", SCALAR_TEXT},       {"1e", SCALAR_TEXT},
                 {"-", SCALAR_TEXT},       {".inf", SCALAR_DOUBLE},
                 {"-.INF", SCALAR_DOUBLE}, {".nan", SCALAR_DOUBLE},
                 {"nan", SCALAR_TEXT},     {"infinity", SCALAR_TEXT},
                 {"1.2.3", SCALAR_TEXT},   {"9223372036854775808", SCALAR_DOUBLE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(scalar_parse(cases[i].text).type, cases[i].type);
    assert_true(scalar_parse("0xdeadbeef").integer == 3735928559);
    assert_true(scalar_parse("-9223372036854775808").integer == INT64_MIN);
    assert_true(scalar_parse("0o17").integer == 15);
    assert_true(scalar_parse("1.5e1").real == 15.0);
    assert_true(scalar_parse("3").real == 3.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_are_replaced_as_the_specification_has_it),
        cmocka_unit_test(malformed_references_are_refused),
        cmocka_unit_test(a_result_that_does_not_fit_is_too_long),
        cmocka_unit_test(plain_scalars_have_the_types_of_yaml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
