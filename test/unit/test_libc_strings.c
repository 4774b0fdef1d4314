/* Tests that our replacements of libc's functions return what libc's do. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* These are our functions, which test/Makefile renames in a copy of their object. */
size_t own_strnlen(const char *text, size_t most);
char *own_stpcpy(char *to, const char *from);
char *own_strchr(const char *text, int wanted);
char *own_strrchr(const char *text, int wanted);
size_t own_strspn(const char *text, const char *set);
size_t own_strcspn(const char *text, const char *set);
char *own_strpbrk(const char *text, const char *set);
void *own_memchr(const void *bytes, int wanted, size_t size);
char *own_strstr(const char *text, const char *wanted);
int own_sigemptyset(sigset_t *set);
int own_sigaddset(sigset_t *set, int number);
int own_sigdelset(sigset_t *set, int number);
int own_sigismember(const sigset_t *set, int number);
int own_sigfillset(sigset_t *set);

static const char *const texts[] = {"",      "a",    "/",     "/usr/bin/python3", "aaa", "abab",
                                    "\xff/", "a=b=", " \t,a", "OTEL_X=1"};
enum { TEXTS = sizeof texts / sizeof *texts };

static void texts_are_as_libc_has_them(void **state) {
    (void)state;
    char ours[32];
    for (size_t i = 0; i < TEXTS; i++) {
        const char *const text = texts[i];
        assert_ptr_equal(own_stpcpy(ours, text), ours + strlen(text));
        assert_string_equal(ours, text);
        for (size_t most = 0; most < 20; most++)
            assert_int_equal(own_strnlen(text, most), strnlen(text, most));
        for (int c = -1; c < 256; c++) {
            assert_ptr_equal(own_strchr(text, c), strchr(text, c));
            assert_ptr_equal(own_strrchr(text, c), strrchr(text, c));
            assert_ptr_equal(own_memchr(text, c, strlen(text)), memchr(text, c, strlen(text)));
        }
    }
}

static void two_texts_are_as_libc_has_them(void **state) {
    (void)state;
    for (size_t i = 0; i < TEXTS * TEXTS; i++) {
        const char *const text = texts[i / TEXTS];
        const char *const other = texts[i % TEXTS];
        assert_int_equal(own_strspn(text, other), strspn(text, other));
        assert_int_equal(own_strcspn(text, other), strcspn(text, other));
        assert_ptr_equal(own_strpbrk(text, other), strpbrk(text, other));
        assert_ptr_equal(own_strstr(text, other), strstr(text, other));
    }
}

static void expect_same(const sigset_t *ours, const sigset_t *libcs) {
    for (int number = -1; number <= 66; number++) {
        errno = 0;
        const int expected = sigismember(libcs, number);
        const int expected_error = errno;
        errno = 0;
        assert_int_equal(own_sigismember(ours, number), expected);
        assert_int_equal(errno, expected_error);
    }
}

static void sets_of_signals_are_as_libc_has_them(void **state) {
    (void)state;
    sigset_t ours;
    sigset_t libcs;
    own_sigfillset(&ours);
    sigfillset(&libcs);
    expect_same(&ours, &libcs);
    for (int number = 1; number <= SIGRTMAX; number += 3) {
        assert_int_equal(own_sigdelset(&ours, number), sigdelset(&libcs, number));
    }
    assert_int_equal(own_sigdelset(&ours, 0), -1);
    expect_same(&ours, &libcs);
    own_sigemptyset(&ours);
    sigemptyset(&libcs);
    expect_same(&ours, &libcs);
    assert_int_equal(own_sigaddset(&ours, SIGPIPE), 0);
    sigaddset(&libcs, SIGPIPE);
    assert_int_equal(own_sigaddset(&ours, 65), -1);
    expect_same(&ours, &libcs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_as_libc_has_them),
        cmocka_unit_test(two_texts_are_as_libc_has_them),
        cmocka_unit_test(sets_of_signals_are_as_libc_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
