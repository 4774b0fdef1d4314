/* Tests gRPC's wrapping of messages and the meaning of its responses, down to garbage at the end of
 * a page. */
#include "unit.h"

#include "export/grpc_response.h"
#include "poisson.h"

#include <sys/mman.h>
#include <unistd.h>

/* --- the message --- */

static void a_message_is_wrapped(void **state) {
    (void)state;
    static const uint8_t expected[] = {1, 0, 0, 1, 2};
    size_t size = 258;
    uint8_t *bytes = malloc(size);
    memset(bytes, 'x', size);
    assert_true(grpc_wrap(&bytes, &size, true));
    assert_int_equal(size, 263);
    assert_memory_equal(bytes, expected, 5);
    for (size_t i = 5; i < size; i++)
        assert_int_equal(bytes[i], 'x');
    free(bytes);
}

static void a_wrapped_message_is_unwrapped(void **state) {
    (void)state;
    size_t size = 8;
    size_t length = 0;
    uint8_t *bytes = malloc(size);
    memcpy(bytes, "profiles", 8);
    for (int compressed = 0; compressed < 2; compressed++) {
        bool marked = !compressed;
        size = 8;
        assert_true(grpc_wrap(&bytes, &size, compressed));
        assert_ptr_equal(grpc_unwrap(bytes, size, &length, &marked), bytes + 5);
        assert_int_equal(length, 8);
        assert_int_equal(marked, compressed);
    }
    free(bytes);
}

static void too_large_is_left_alone(void **state) {
    (void)state;
    uint8_t byte = 7;
    uint8_t *bytes = &byte; /* must not be touched */
    size_t size = (size_t)UINT32_MAX + 1;
    assert_false(grpc_wrap(&bytes, &size, false));
    assert_ptr_equal(bytes, &byte);
    assert_int_equal(size, (size_t)UINT32_MAX + 1);
}

static void an_incomplete_message_is_none(void **state) {
    (void)state;
    static const uint8_t short_by_one[] = {0, 0, 0, 0, 3, 'a', 'b'};
    static const uint8_t huge[] = {0, 0xff, 0xff, 0xff, 0xff, 'a'};
    static const uint8_t unknown[] = {2, 0, 0, 0, 1, 'a'};
    static const uint8_t empty[] = {0, 0, 0, 0, 0};
    bool compressed = true;
    size_t length = 99;
    assert_null(grpc_unwrap(short_by_one, sizeof short_by_one, &length, &compressed));
    assert_null(grpc_unwrap(huge, sizeof huge, &length, &compressed));
    assert_null(grpc_unwrap(unknown, sizeof unknown, &length, &compressed));
    for (size_t size = 0; size < 5; size++)
        assert_null(grpc_unwrap(empty, size, &length, &compressed));
    assert_non_null(grpc_unwrap(empty, sizeof empty, &length, &compressed));
    assert_int_equal(length, 0);
    assert_false(compressed);
}

/* --- codes --- */

static void codes_that_may_be_retried(void **state) {
    (void)state;
    static const char *const retried[] = {"CANCELLED",    "DEADLINE_EXCEEDED", "ABORTED",
                                          "OUT_OF_RANGE", "UNAVAILABLE",       "DATA_LOSS"};
    for (int code = 0; code < GRPC_CODE_COUNT; code++) {
        bool expected = false;
        for (size_t i = 0; i < 6; i++)
            expected |= strcmp(grpc_code_name((enum grpc_code)code), retried[i]) == 0;
        assert_int_equal(grpc_may_be_retried((enum grpc_code)code, false), expected);
        assert_int_equal(grpc_may_be_retried((enum grpc_code)code, true),
                         expected || code == GRPC_RESOURCE_EXHAUSTED);
    }
    assert_int_equal(GRPC_UNAUTHENTICATED, 16);
    static const char *const names[] = {"OK",
                                        "CANCELLED",
                                        "UNKNOWN",
                                        "INVALID_ARGUMENT",
                                        "DEADLINE_EXCEEDED",
                                        "NOT_FOUND",
                                        "ALREADY_EXISTS",
                                        "PERMISSION_DENIED",
                                        "RESOURCE_EXHAUSTED",
                                        "FAILED_PRECONDITION",
                                        "ABORTED",
                                        "OUT_OF_RANGE",
                                        "UNIMPLEMENTED",
                                        "INTERNAL",
                                        "UNAVAILABLE",
                                        "DATA_LOSS",
                                        "UNAUTHENTICATED"};
    assert_int_equal(sizeof names / sizeof *names, GRPC_CODE_COUNT);
    for (int code = 0; code < GRPC_CODE_COUNT; code++)
        assert_string_equal(grpc_code_name((enum grpc_code)code), names[code]);
    assert_string_equal(grpc_code_name((enum grpc_code)17), "UNKNOWN");
}

static void codes_of_http(void **state) {
    (void)state;
    static const struct {
        long status;
        enum grpc_code code;
    } cases[] = {
        {400, GRPC_INTERNAL},      {401, GRPC_UNAUTHENTICATED}, {403, GRPC_PERMISSION_DENIED},
        {404, GRPC_UNIMPLEMENTED}, {429, GRPC_UNAVAILABLE},     {502, GRPC_UNAVAILABLE},
        {503, GRPC_UNAVAILABLE},   {504, GRPC_UNAVAILABLE},     {500, GRPC_UNKNOWN},
        {200, GRPC_UNKNOWN},       {302, GRPC_UNKNOWN},         {0, GRPC_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(grpc_code_of_http(cases[i].status), cases[i].code);
}

/* --- responses --- */

static void take(struct grpc_response *response, const char *line) {
    grpc_response_take_line(response, line, strlen(line));
}

static struct grpc_response response_with(const char *header) {
    struct grpc_response response = {.has_status = true};
    take(&response, "HTTP/2 200 \r\n");
    take(&response, header);
    take(&response, "\r\n");
    return response;
}

static void trailers_end_the_response(void **state) {
    (void)state;
    struct grpc_response response;
    take(&response, "HTTP/2 200 \r\n");
    assert_false(response.has_status);
    assert_string_equal(response.message, "");
    take(&response, "content-type: application/grpc\r\n");
    take(&response, "\r\n");
    assert_false(response.complete);
    take(&response, "grpc-status: 0\r\n");
    assert_true(response.has_status);
    assert_false(response.complete);
    take(&response, "\r\n");
    assert_true(response.complete);
    assert_int_equal(response.code, GRPC_OK);
}

static void an_informational_response_has_no_status(void **state) {
    (void)state;
    struct grpc_response response;
    take(&response, "HTTP/2 103 \r\n");
    take(&response, "grpc-status: 14\r\n");
    take(&response, "grpc-message: early\r\n");
    take(&response, "\r\n");
    assert_false(response.has_status);
    assert_false(response.complete);
    assert_string_equal(response.message, "");
    take(&response, "HTTP/2 200 \r\n");
    take(&response, "grpc-status: 0\r\n");
    take(&response, "\r\n");
    assert_true(response.complete);
    assert_int_equal(response.code, GRPC_OK);
}

static void a_status_line_begins_again(void **state) {
    (void)state;
    struct grpc_response response = response_with("grpc-status: 14\r\n");
    take(&response, "HTTP/2 200 \r\n");
    assert_false(response.has_status);
    assert_false(response.complete);
}

static void statuses(void **state) {
    (void)state;
    static const struct {
        const char *header;
        enum grpc_code code;
    } cases[] = {
        {"grpc-status: 14\r\n", GRPC_UNAVAILABLE},
        {"Grpc-Status:8", GRPC_RESOURCE_EXHAUSTED},
        {"grpc-status: \t16 \r\n", GRPC_UNAUTHENTICATED},
        {"grpc-status: 17\r\n", GRPC_UNKNOWN},
        {"grpc-status: -1\r\n", GRPC_UNKNOWN},
        {"grpc-status: \r\n", GRPC_UNKNOWN},
        {"grpc-status:\r\n", GRPC_UNKNOWN},
        {"grpc-status: 014\r\n", GRPC_UNKNOWN},
        {"grpc-status: 1x\r\n", GRPC_UNKNOWN},
        {"grpc-status: 4294967296\r\n", GRPC_UNKNOWN},
        {"grpc-status: 4294967310\r\n", GRPC_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct grpc_response response = response_with(cases[i].header);
        assert_true(response.has_status);
        assert_true(response.complete);
        assert_int_equal(response.code, cases[i].code);
    }
    static const char *const others[] = {"grpc-statu: 0", "grpc-statuses: 0", "x-grpc-status: 0",
                                         "grpc-status", "grpc-status 0"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(response_with(others[i]).has_status);
}

static void messages(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"grpc-message: too%20large\r\n", "too large"},
        {"grpc-message: 100%25\r\n", "100%"},
        {"grpc-message: no%21 %E2%82%AC%0a\r\n", "no! €\n"},
        {"grpc-message: gr%C3%BC%c3%9fe\r\n", "grüße"},
        {"grpc-message: a%0Ab%00c%1b[1m\r\n", "a\nb?c\x1b[1m"},
        {"grpc-message: %zz %4 %\r\n", "%zz %4 %"},
        {"grpc-message: %ff\r\n", "\xff"},
        {"grpc-message:\r\n", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(response_with(cases[i][0]).message, cases[i][1]);
    char line[4096] = "grpc-message: ";
    memset(line + strlen(line), 'm', sizeof line - 1 - strlen(line));
    line[sizeof line - 1] = 0;
    assert_int_equal(strlen(response_with(line).message),
                     sizeof((struct grpc_response *)0)->message - 1);
}

/* --- details --- */

/* Is google.rpc.Status {code 8, message "full"} with the details named, made by Python's
 * protobuf. */
#define FULL     "CAgSBGZ1bGwa"
#define INFO     "HlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mb"
#define HELP     "KwojdHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkhlbHAS"
#define QUARTER  FULL "Mwood" INFO "xIHCgUQgOWadw"            /* RetryInfo 0.25 s */
#define SECOND   FULL HELP "BAoCaGkaMgood" INFO "xIGCgQIAxAF" /* Help, RetryInfo 3.000000005 s */
#define NO_DELAY FULL "Kgood" INFO "w"                        /* RetryInfo {} */
#define NEGATIVE FULL "OQood" INFO "xINCgsI////////////AQ"    /* -1 s */
#define FRACTION FULL "NAood" INFO "xIICgYQgJTr3AM"           /* 1,000,000,000 ns */
#define AGES     FULL "Owood" INFO "xIPCg0IgLyuzpcJEP+T69wD"  /* 10,000 years and 999,999,999 ns */
#define OTHER    FULL HELP "BAoCCAE"                          /* Help alone */
#define CUT      FULL "Lwood" INFO "xIDCgUI"                  /* a RetryInfo that is cut short */

static struct grpc_response response_with_details(const char *base64) {
    char line[16384];
    snprintf(line, sizeof line, "grpc-status-details-bin: %s\r\n", base64);
    return response_with(line);
}

static void retry_info(void **state) {
    (void)state;
    static const struct {
        const char *base64;
        bool has;
        uint64_t nano;
    } cases[] = {
        {QUARTER, true, 250000000},
        {QUARTER "==", true, 250000000}, /* padded */
        {SECOND, true, 3000000005},
        {NO_DELAY "==", true, 0},
        {AGES, true, UINT64_MAX}, /* the sender bounds it */
        {NEGATIVE, false, 0},
        {FRACTION "=", false, 0},
        {OTHER, false, 0},
        {CUT, false, 0},
        {"", false, 0},
        {"CAgSBGZ1bGw=", false, 0}, /* without details */
        {QUARTER "=", false, 0},
        {QUARTER "===", false, 0},
        {QUARTER "," QUARTER, false, 0},
        {"-" QUARTER, false, 0},
        {"%%%", false, 0},
        {"/////w==", false, 0},
        {"A", false, 0},
        {"====", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct grpc_response response = response_with_details(cases[i].base64);
        if (response.has_retry_info != cases[i].has)
            fail_msg("details %s", cases[i].base64);
        if (cases[i].has)
            assert_int_equal(response.retry_delay_nano, cases[i].nano);
    }
}

static void details_without_end_are_none(void **state) {
    (void)state;
    static char base64[12001];
    memset(base64, 'A', sizeof base64 - 1);
    assert_false(response_with_details(base64).has_retry_info);
}

/* Puts a line at the end of a page; memory behind it cannot be read. */
static char *at_end_of_page(const char *line, size_t size) {
    static char *page;
    const size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    if (!page) {
        page =
            mmap(NULL, 2 * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_int_equal(mprotect(page + page_size, page_size, PROT_NONE), 0);
    }
    return memcpy(page + page_size - size, line, size);
}

/* Cuts each line at each length, then replaces bytes in many. Each parse ends, and gives a text
 * that ends and a code that exists. */
static void garbage_is_survived(void **state) {
    (void)state;
    static const char *const lines[] = {
        "HTTP/2 103 \r\n",
        "grpc-status: 14\r\n",
        "grpc-message: a%20b%C3%BC%\r\n",
        "grpc-status-details-bin: " SECOND "\r\n",
    };
    uint64_t random = 4711;
    for (size_t i = 0; i < 4; i++) {
        const size_t size = strlen(lines[i]);
        struct grpc_response response = {.has_status = false};
        for (size_t cut = 0; cut <= size; cut++)
            grpc_response_take_line(&response, at_end_of_page(lines[i], cut), cut);
        for (int round = 0; round < 20000; round++) {
            char *const line = at_end_of_page(lines[i], size);
            for (int changes = 0; changes < 3; changes++)
                line[random_next(&random) % size] = (char)random_next(&random);
            grpc_response_take_line(&response, line, size);
            assert_in_range(response.code, 0, GRPC_CODE_COUNT - 1);
            assert_true(strnlen(response.message, sizeof response.message) <
                        sizeof response.message);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_wrapped),
        cmocka_unit_test(a_wrapped_message_is_unwrapped),
        cmocka_unit_test(too_large_is_left_alone),
        cmocka_unit_test(an_incomplete_message_is_none),
        cmocka_unit_test(codes_that_may_be_retried),
        cmocka_unit_test(codes_of_http),
        cmocka_unit_test(trailers_end_the_response),
        cmocka_unit_test(an_informational_response_has_no_status),
        cmocka_unit_test(a_status_line_begins_again),
        cmocka_unit_test(statuses),
        cmocka_unit_test(messages),
        cmocka_unit_test(retry_info),
        cmocka_unit_test(details_without_end_are_none),
        cmocka_unit_test(garbage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
