/* Tests globs: the cases that a reader would look up, and agreement with fnmatch() on random
 * ones. */
#include "unit.h"

#include "glob.h"

#include <fnmatch.h>
#include <locale.h>

static bool matches(const char *pattern, const char *text) {
    return glob_matches((struct glob){pattern, strlen(pattern)}, text);
}

static void usual_patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern;
        const char *text;
        bool expected;
    } cases[] = {
        {"bash", "bash", true},
        {"bash", "bash5", false},
        {"bash", "", false},
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", ".a/b", true},
        {"python3*", "python3.11", true},
        {"*secret*", "_ZN6secret4loadEv", true},
        {"*secret*", "secre", false},
        {"/usr/*/cc1*", "/usr/lib/gcc/x/12/cc1plus", true},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"[a-c]x", "bx", true},
        {"[!a-c]x", "bx", false},
        {"[^a-c]x", "dx", true},
        {"[]a]", "]", true},
        {"[a-]", "-", true},
        {"[c-a]", "b", false},
        {"[a\\]b]", "]", true},
        {"[", "[", true},
        {"[ab", "[ab", true},
        {"[ab", "a", false},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a\\", "a\\", false},
        {"?", "\xff", true},
        {"*\xff*", "a\xff\xfe", true},
        {"[\x80-\xff]", "\xe4", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (matches(cases[i].pattern, cases[i].text) != cases[i].expected)
            fail_msg("\"%s\" and \"%s\"", cases[i].pattern, cases[i].text);
}

/* Takes no exponential time for many stars: a naive matcher would outlive the universe. */
static void many_stars(void **state) {
    (void)state;
    char text[2001];
    memset(text, 'a', 2000);
    text[2000] = 0;
    assert_false(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
    assert_true(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*", text));
}

static uint32_t random_below(uint32_t *state, uint32_t limit) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 16) % limit;
}

static void random_text(uint32_t *state, const char *alphabet, char *text, uint32_t max) {
    const uint32_t size = random_below(state, max);
    for (uint32_t i = 0; i < size; i++)
        text[i] = alphabet[random_below(state, (uint32_t)strlen(alphabet))];
    text[size] = 0;
}

static void agrees_with_fnmatch(void **state) {
    (void)state;
    uint32_t random = 1;
    int matched = 0;
    assert_non_null(setlocale(LC_ALL, "C"));
    for (int i = 0; i < 2000000; i++) {
        char pattern[12];
        char text[8];
        /* no dot: "[.a.]" would be a collating symbol */
        random_text(&random, "ab-*?[]!^\\/", pattern, 12);
        random_text(&random, "ab-]!/.[", text, 8);
        /* glibc lets an unclosed set that ends in half a range match nothing, not even itself */
        if (pattern[0] && pattern[strlen(pattern) - 1] == '-')
            continue;
        const bool expected = fnmatch(pattern, text, 0) == 0;
        if (matches(pattern, text) != expected)
            fail_msg("\"%s\" and \"%s\": fnmatch says %d", pattern, text, expected);
        matched += expected;
    }
    assert_true(matched > 10000);
}

static void lists(void **state) {
    (void)state;
    const char *list = ", a*b ,,\tc d\t, ";
    struct glob element;
    assert_true(glob_next(&list, &element));
    assert_true(glob_is_word(element, "a*b"));
    assert_true(glob_next(&list, &element));
    assert_true(glob_is_word(element, "c d"));
    assert_false(glob_is_word(element, "c"));
    assert_false(glob_next(&list, &element));
    list = "";
    assert_false(glob_next(&list, &element));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_patterns),
        cmocka_unit_test(many_stars),
        cmocka_unit_test(agrees_with_fnmatch),
        cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
