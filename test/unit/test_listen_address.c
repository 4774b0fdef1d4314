/* Tests where a process may listen. */
#include "unit.h"

#include "serve/listen_address.h"

#include <arpa/inet.h>
#include <string.h>

static struct listen_address address;

static const char *parse(const char *text) {
    return listen_address_parse(text, 4711, &address);
}

static void a_path_is_taken_as_it_is(void **state) {
    (void)state;
    assert_null(parse("unix:/run/app.sock"));
    assert_true(address.is_unix);
    assert_string_equal(address.path, "/run/app.sock");
}

static void a_process_can_have_a_path_of_its_own(void **state) {
    (void)state;
    assert_null(parse("unix:/run/%p/app-%p.sock"));
    assert_string_equal(address.path, "/run/4711/app-4711.sock");
    assert_null(parse("unix:/run/app/"));
    assert_string_equal(address.path, "/run/app/4711.sock");
    assert_null(parse("unix:/run/100%"));
    assert_string_equal(address.path, "/run/100%");
}

static void a_path_has_bounds(void **state) {
    char text[LISTEN_PATH + 64] = "unix:/";
    (void)state;
    memset(text + 6, 'x', LISTEN_PATH - 2); /* with its `/` and the NUL the text fits */
    assert_null(parse(text));
    assert_int_equal(strlen(address.path), LISTEN_PATH - 1);
    text[LISTEN_PATH + 4] = 'x';
    assert_string_equal(parse(text), "is too long");
    strcpy(text + LISTEN_PATH + 2, "%p");
    assert_string_equal(parse(text), "is too long");
    strcpy(text + LISTEN_PATH, "/");
    assert_string_equal(parse(text), "is too long");
    assert_string_equal(parse("unix:relative"), "is no absolute path behind unix:");
    assert_string_equal(parse("unix:"), "is no absolute path behind unix:");
}

static void a_port_is_of_this_machine_alone(void **state) {
    static const char *const names[] = {"127.0.0.1:6060", "localhost:6060", "LOCALHOST:6060"};
    const struct sockaddr_in *const v4 = (const void *)&address.inet;
    const struct sockaddr_in6 *const v6 = (const void *)&address.inet;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_null(parse(names[i]));
        assert_false(address.is_unix);
        assert_int_equal(v4->sin_family, AF_INET);
        assert_int_equal(ntohs(v4->sin_port), 6060);
        assert_int_equal(ntohl(v4->sin_addr.s_addr), INADDR_LOOPBACK);
        assert_int_equal(address.inet_size, sizeof *v4);
    }
    assert_null(parse("[::1]:0"));
    assert_int_equal(v6->sin6_family, AF_INET6);
    assert_memory_equal(&v6->sin6_addr, &in6addr_loopback, sizeof in6addr_loopback);
    assert_int_equal(v6->sin6_port, 0);
}

static void everything_else_is_refused(void **state) {
    static const char *const wrong[] = {"",
                                        "6060",
                                        "nonsense",
                                        ":6060",
                                        "127.0.0.1",
                                        "127.0.0.1:",
                                        "127.0.0.1:65536",
                                        "localhost:99999",
                                        "127.0.0.1:-1",
                                        "127.0.0.1:1x",
                                        "0.0.0.0:6060",
                                        "127.0.0.2:6060",
                                        "[::]:6060",
                                        "::1:6060",
                                        "example.com:6060",
                                        "localhost.example.com:6060",
                                        "http://127.0.0.1:6060",
                                        "UNIX:/run/x"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_non_null(parse(wrong[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_taken_as_it_is),
        cmocka_unit_test(a_process_can_have_a_path_of_its_own),
        cmocka_unit_test(a_path_has_bounds),
        cmocka_unit_test(a_port_is_of_this_machine_alone),
        cmocka_unit_test(everything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
