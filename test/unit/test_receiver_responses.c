/* Tests the effect of an HTTP receiver's response to one export: the fate of the samples, and the
 * lines in the log. */
#include "unit.h"

#include "poisson.h"
#include "scripted_receiver.h"

enum fate { TAKEN, DROPPED, KEPT };

struct outcome {
    enum fate fate;
    int requests;
    uint64_t next;  /* when kept samples are sent again */
    char log[1024]; /* "": nothing is logged */
};

/* Sends once to a receiver that gives this response. */
static struct outcome send_to(const void *answer, size_t size, const char *user, const char *query,
                              const char *headers) {
    const char *const answers[] = {answer, ok, NULL};
    struct outcome outcome = {.fate = KEPT};
    char path[] = "/tmp/test_receiver.XXXXXX";
    close(mkstemp(path));
    start_server(answers);
    server.first_size = size;
    struct sender *const sender = open_with(user, query, headers, NULL);
    fake.log = (struct log){.level = LOG_WARN, .file = path};
    add(sender, 5);
    uint64_t at = 0;
    for (int steps = 0; at != UINT64_MAX && !outcome.log[0]; steps++) {
        assert_in_range(steps, 0, 10000);
        at = sender_step(sender, false);
        outcome.requests = atomic_load(&server.requests);
        read_log(path, outcome.log);
        if (at != UINT64_MAX && !outcome.log[0])
            (void)fake_wait(at);
    }
    if (at == UINT64_MAX)
        outcome.fate = fake.dropped[DROP_REJECTED] ? DROPPED : TAKEN;
    else
        outcome.next = sender_step(sender, false);
    assert_int_equal(fake.dropped[DROP_REJECTED], outcome.fate == DROPPED ? 5 : 0);
    sender_close(sender);
    stop_server();
    unlink(path);
    return outcome;
}

static struct outcome send_status(int status, const char *fields, const void *body, size_t size,
                                  const char *headers) {
    static char answer[70000];
    const int head =
        snprintf(answer, sizeof answer, "HTTP/1.1 %d Status\r\n%sContent-Length: %zu\r\n\r\n",
                 status, fields, size);
    assert_true((size_t)head + size < sizeof answer);
    memcpy(answer + head, body, size);
    return send_to(answer, (size_t)head + size, "", "", headers);
}

static void assert_says(const struct outcome *outcome, const char *words) {
    if (!strstr(outcome->log, words))
        fail_msg("\"%s\" is not in: %s", words, outcome->log);
}

static void a_status_decides(void **state) {
    (void)state;
    static const struct {
        int status;
        enum fate fate;
    } cases[] = {
        {200, TAKEN},   {202, TAKEN},   {299, TAKEN},   {301, DROPPED}, {302, DROPPED},
        {307, DROPPED}, {308, DROPPED}, {400, DROPPED}, {401, DROPPED}, {403, DROPPED},
        {404, DROPPED}, {413, DROPPED}, {415, DROPPED}, {500, DROPPED}, {429, KEPT},
        {502, KEPT},    {503, KEPT},    {504, KEPT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[64];
        const bool is_redirect = cases[i].status / 100 == 3;
        const struct outcome outcome =
            send_status(cases[i].status, is_redirect ? "Location: http://127.0.0.1:1/\r\n" : "",
                        "no\n", cases[i].fate == TAKEN ? 0 : 3, "x-key=a%20b");
        assert_int_equal(outcome.fate, cases[i].fate);
        assert_int_equal(outcome.requests, 1);
        snprintf(expected, sizeof expected, "(HTTP status %d: no)%s", cases[i].status,
                 cases[i].fate == KEPT ? "; trying again" : "; they are dropped");
        if (cases[i].fate == TAKEN)
            assert_string_equal(outcome.log, "");
        else
            assert_says(&outcome, expected);
    }
}

/* Checks the receiver's words in the log. shown_text() escapes the bytes that a log must not
 * contain. */
static void the_receivers_own_words_are_logged(void **state) {
    (void)state;
    static const struct {
        const char *type;
        const char *body;
        const char *words;
    } cases[] = {
        {"text/plain; charset=utf-8", "too many\n", ": too many"},
        {NULL, "too many", ": too many"},
        {"text/plain", "a\nb\x1b[31m", ": a\\x0ab\\x1b[31m"},
        {"text/plain", "", ""},
        {"text/html", "<html><body>Bad Request</body></html>", ""},
        {"application/json", "{\"code\": 3, \"message\": \"wrong label\"}", ": wrong label"},
        {"application/json", "{\"error\": \"unheard of\"}", ": {\"error\": \"unheard of\"}"},
        {"application/json", "{\"message\": ", ": {\"message\":"},
        {"application/x-protobuf", "\x08\x03\x12\x0bwrong label", ": wrong label"},
        {"application/x-protobuf", "\xff\xff\xff", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char type[64] = "";
        char expected[128];
        if (cases[i].type)
            snprintf(type, sizeof type, "Content-Type: %s\r\n", cases[i].type);
        const struct outcome outcome =
            send_status(400, type, cases[i].body, strlen(cases[i].body), "x-key=a%20b");
        snprintf(expected, sizeof expected,
                 "refused profiles (HTTP status 400%s); they are dropped\n", cases[i].words);
        assert_int_equal(outcome.fate, DROPPED);
        assert_says(&outcome, expected);
    }
}

/* Keeps both ends: the front has the fault, and the end has the limit. */
static void long_words_lose_their_middle(void **state) {
    (void)state;
    char body[2000] = "profile series '{label_0=";
    for (int i = 0; i < 31; i++)
        strcat(body, "\"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\", label=");
    strcat(body, "}' has 31 label names; limit 30");
    const struct outcome outcome =
        send_status(400, "Content-Type: text/plain\r\n", body, strlen(body), "x-key=a%20b");
    assert_says(&outcome, "(HTTP status 400: profile series '{label_0=");
    assert_says(&outcome, " ... ");
    assert_says(&outcome, "has 31 label names; limit 30); they are dropped");
    assert_in_range(strlen(outcome.log), 400, 600);
}

/* Shows the scheme of an authorization, unless the scheme stands alone in the header. */
static void words_that_repeat_a_header_are_not_shown(void **state) {
    (void)state;
    static char cut[4096]; /* the part of a refusal that is read, and the secret within its end */
    memset(cut, 'x', sizeof cut - 10);
    memcpy(cut + sizeof cut - 10, "sEcReT/ab", 10);
    static const struct {
        const char *headers;
        const char *body;
        bool shown;
    } cases[] = {
        {"authorization=Bearer%20sEcReT", "no such token: sEcReT!", false},
        {"authorization=Bearer%20sEcReT/abc", "{\"error\":\"bad token sEcReT\\/abc\"}", false},
        {"authorization=Bearer%20sEcReT/abc", cut, false},
        {"authorization=Bearer%20sEcReT-abc", "Bearer token expired", true},
        {"Proxy-Authorization=Bearer%20%20sEcReT-abc", "Bearer token expired", true},
        {"authorization=Bearer", "Bearer token expired", false},
        {"x-key=Bearer%20sEcReT-abc", "Bearer token expired", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct outcome outcome =
            send_status(401, "Content-Type: text/plain\r\n", cases[i].body, strlen(cases[i].body),
                        cases[i].headers);
        assert_int_equal(outcome.fate, DROPPED);
        assert_null(strstr(outcome.log, "sEcReT"));
        assert_says(&outcome,
                    cases[i].shown
                        ? "(HTTP status 401: Bearer token expired)"
                        : "(HTTP status 401: its words repeat a header and are not shown)");
    }
}

static void no_words_are_shown_where_the_url_has_a_secret(void **state) {
    (void)state;
    static const struct {
        const char *user;
        const char *query;
        const char *body;
    } cases[] = {
        {"bob:p%40ss%2FwOrD@", "", "no such user: Basic Ym9iOnBAc3Mvd09yRA=="},
        {"bob:p%40ss%2FwOrD@", "", "password p@ss/wOrD"},
        {"", "?key=QuErYvAlUe-NuMbEr-1", "no page /v1development/profiles?key=QuErYvAlUe-NuMbEr-1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char answer[256];
        const int size =
            snprintf(answer, sizeof answer,
                     "HTTP/1.1 401 No\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s",
                     strlen(cases[i].body), cases[i].body);
        const struct outcome outcome =
            send_to(answer, (size_t)size, cases[i].user, cases[i].query, "");
        assert_int_equal(outcome.fate, DROPPED);
        assert_says(&outcome,
                    "(HTTP status 401: its words are not shown: the URL has credentials or "
                    "a query); they are dropped");
        assert_null(strstr(outcome.log, "QuErY"));
        assert_null(strstr(outcome.log, "wOrD"));
    }
}

/* Delays that count are 50 seconds at least; a delay of our own is one second at most. 18446744074
 * seconds are 0.29, in nanoseconds modulo 2^64. */
static void retry_after(void **state) {
    (void)state;
    char in_an_hour[64] = "";
    const time_t then = time(NULL) + 3600;
    strftime(in_an_hour, sizeof in_an_hour, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&then));
    const struct {
        const char *value;
        bool counts;
    } cases[] = {
        {"50", true},
        {"18446744074", true},
        {in_an_hour, true},
        {"Wed, 21 Oct 2015 07:28:00 GMT", false},
        {"-7", false},
        {"soon", false},
        {"0", false},
        {"", false},
        {"999999999999999999999999999999", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char fields[128];
        snprintf(fields, sizeof fields, "Retry-After: %s\r\n", cases[i].value);
        const struct outcome outcome = send_status(503, fields, "", 0, "x-key=a%20b");
        const uint64_t now = monotonic_nano();
        assert_int_equal(outcome.fate, KEPT);
        if (cases[i].counts ? outcome.next < now + 10 * (uint64_t)NANO_PER_SECOND
                            : outcome.next > now + NANO_PER_SECOND)
            fail_msg("Retry-After: %s", cases[i].value);
    }
}

/* Ignores garbage in the body: the status alone means that the receiver has taken the profiles. */
static void success_with_garbage(void **state) {
    (void)state;
    static const char *const cases[] = {"\xff\xff\xff", "\x0a\xff\xff\xff\xff\x0f",
                                        "\x0a\x0b\x08\x02\x12\x07too ol", "{}"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct outcome outcome = send_status(200, "", cases[i], strlen(cases[i]), "");
        assert_int_equal(outcome.fate, TAKEN);
        assert_string_equal(outcome.log, "");
    }
    static uint8_t noise[60000];
    uint64_t random = 4711;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)(random_next(&random) >> 32);
    const struct outcome outcome = send_status(200, "", noise, sizeof noise, "");
    assert_int_equal(outcome.fate, TAKEN);
    assert_string_equal(outcome.log, "");
}

static void responses_that_are_no_http_are_tried_again(void **state) {
    (void)state;
    static const char zeroes[100];
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"220 mail.example ESMTP \x1b[31m\r\n", 0},
        {zeroes, sizeof zeroes},
        {"", 0},
        {"HTTP/1.1 abc\r\n\r\n", 0},
        {"HTTP/1.1 103 Early\r\n\r\n", 0},
        {"HTTP/1.1 ", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct outcome outcome = send_to(cases[i].bytes, cases[i].size, "", "", "");
        assert_int_equal(outcome.fate, KEPT);
        assert_says(&outcome, "/v1development/profiles (");
        assert_says(&outcome, "); trying again");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_decides),
        cmocka_unit_test(the_receivers_own_words_are_logged),
        cmocka_unit_test(long_words_lose_their_middle),
        cmocka_unit_test(words_that_repeat_a_header_are_not_shown),
        cmocka_unit_test(no_words_are_shown_where_the_url_has_a_secret),
        cmocka_unit_test(retry_after),
        cmocka_unit_test(success_with_garbage),
        cmocka_unit_test(responses_that_are_no_http_are_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
