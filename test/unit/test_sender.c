/* Tests sending over real HTTP to a real socket: requests are accepted, retried, refused or given
 * up. */
#include "unit.h"

#include "scripted_receiver.h"

static const char later[] = "HTTP/1.1 503 Later\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
static const char much_later[] =
    "HTTP/1.1 503 Later\r\nRetry-After: 50\r\nContent-Length: 0\r\n\r\n";
static const char never[] = "HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\nbad";
static const char partial_json[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 69\r\n\r\n"
    "{\"partialSuccess\":{\"rejectedProfiles\":\"3\",\"errorMessage\":\"too\\nold\"}}";
static const char warning_json[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 44\r\n\r\n"
    "{\"partialSuccess\":{\"errorMessage\":\"use v1\"}}";
static const char negative_json[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 64\r\n\r\n"
    "{\"partialSuccess\":{\"rejectedProfiles\":-3,\"errorMessage\":\"odd\"}}";
static const char redirect[] =
    "HTTP/1.1 307 There\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";

static struct sender *open_for(int port, const char *more) {
    server.port = port;
    return open_with("", "", "x-key=a%20b", more);
}

/* Steps until nothing is left to do, for at most ten seconds. */
static void run(struct sender *sender, bool last) {
    const uint64_t end = monotonic_nano() + 10 * (uint64_t)NANO_PER_SECOND;
    while (monotonic_nano() < end) {
        const uint64_t next = sender_step(sender, last);
        if (next == UINT64_MAX || next == 0)
            return;
        (void)fake_wait(next);
    }
    fail_msg("the sender did not come to an end");
}

static void accepted(void **state) {
    (void)state;
    const char *const answers[] = {ok, NULL};
    start_server(answers);
    struct sender *const sender = open_for(server.port, NULL);
    add(sender, 5);
    run(sender, false);
    assert_int_equal(atomic_load(&server.requests), 1);
    assert_non_null(strstr(server.last, "POST /v1development/profiles HTTP/1.1\r\n"));
    assert_non_null(strstr(server.last, "Content-Type: application/x-protobuf\r\n"));
    assert_non_null(strstr(server.last, "OTLP-Profiles-Development-Version: 1\r\n"));
    assert_non_null(strstr(server.last, "x-key: a b\r\n"));
    assert_non_null(strstr(server.last, "OTel-OTLP-Exporter-C/"));
    assert_null(strcasestr(server.last, "Content-Encoding"));
    assert_null(strcasestr(server.last, "Expect:"));
    assert_non_null(strstr(server.last, "\r\n\r\nprofiles"));
    assert_int_equal(fake.answered, 1);
    assert_int_equal(fake.slept_in_lock, 0);
    assert_int_equal(fake.lock_depth, 0);
    sender_close(sender);
    stop_server();
}

/* Sends once as JSON to a receiver that gives this response; returns the log. */
static void send_json(const char *answer, char log[static 1024]) {
    const char *const answers[] = {answer, ok, NULL};
    char path[] = "/tmp/test_sender.XXXXXX";
    close(mkstemp(path));
    start_server(answers);
    struct sender *const sender =
        open_for(server.port, "OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=http/json");
    fake.log = (struct log){.level = LOG_WARN, .file = path};
    add(sender, 5);
    run(sender, false);
    assert_non_null(strstr(server.last, "Content-Type: application/json\r\n"));
    assert_int_equal(fake.dropped[DROP_REJECTED], 0);
    assert_int_equal(fake.answered, 1);
    read_log(path, log);
    sender_close(sender);
    stop_server();
    unlink(path);
}

static void json_is_sent_and_its_response_read(void **state) {
    (void)state;
    char log[1024];
    send_json(partial_json, log);
    assert_non_null(strstr(log, "the receiver rejected 3 profiles: too\\x0aold\n"));
}

static void fewer_than_no_profiles_cannot_be_rejected(void **state) {
    (void)state;
    char log[1024];
    send_json(negative_json, log);
    assert_non_null(strstr(log, "the receiver reported a negative number of rejected profiles, "
                                "which is taken as 0: odd\n"));
    assert_null(strstr(log, "-3"));
}

/* Rejects nothing, but the receiver sends a message. */
static void a_warning_with_success(void **state) {
    (void)state;
    char log[1024];
    send_json(warning_json, log);
    assert_non_null(strstr(log, "the receiver took the profiles, with a warning: use v1\n"));
}

static void compressed(void **state) {
    (void)state;
    const char *const answers[] = {ok, NULL};
    start_server(answers);
    struct sender *const sender = open_for(server.port, "OTEL_EXPORTER_OTLP_COMPRESSION=zstd");
    add(sender, 1);
    run(sender, false);
    assert_non_null(strstr(server.last, "Content-Encoding: zstd\r\n"));
    sender_close(sender);
    stop_server();
}

static void retried_on_request(void **state) {
    (void)state;
    const char *const answers[] = {later, ok, NULL};
    start_server(answers);
    struct sender *const sender = open_for(server.port, NULL);
    add(sender, 5);
    run(sender, false);
    assert_int_equal(atomic_load(&server.requests), 2);
    assert_int_equal(fake.answered, 1);
    sender_close(sender);
    stop_server();
    for (int i = 0; i < DROP_REASON_COUNT; i++)
        assert_int_equal(fake.dropped[i], 0);
}

static void refused_for_good(void **state) {
    (void)state;
    const char *const answers[] = {never, NULL};
    start_server(answers);
    struct sender *const sender = open_for(server.port, NULL);
    add(sender, 5);
    run(sender, false);
    assert_int_equal(atomic_load(&server.requests), 1);
    assert_int_equal(fake.dropped[DROP_REJECTED], 5);
    sender_close(sender);
    stop_server();
}

static void redirects_are_not_followed(void **state) {
    (void)state;
    const char *const answers[] = {redirect, NULL};
    start_server(answers);
    struct sender *const sender = open_for(server.port, NULL);
    add(sender, 5);
    run(sender, false);
    assert_int_equal(fake.dropped[DROP_REJECTED], 5);
    sender_close(sender);
    stop_server();
}

static void no_receiver_is_waited_for_at_the_end(void **state) {
    (void)state;
    const char *const answers[] = {ok, NULL};
    start_server(answers);
    const int port = server.port;
    stop_server(); /* now no process listens there */
    struct sender *const sender = open_for(port, NULL);
    add(sender, 5);
    add(sender, 6);
    run(sender, true);
    assert_int_equal(fake.dropped[DROP_AT_EXIT], 11);
    sender_close(sender);
}

/* Steps until the transfer has failed; returns when the next attempt is due. */
static uint64_t fail_once(struct sender *sender) {
    for (int i = 0; i < 1000; i++) {
        const uint64_t next = sender_step(sender, false);
        if (next > monotonic_nano() + NANO_PER_SECOND / 4)
            return next;
        (void)fake_wait(next);
    }
    fail_msg("nothing was put off");
    return 0;
}

/* Sends a delayed export at the end, without waiting for its time. */
static void the_end_cuts_a_delay_short(void **state) {
    (void)state;
    const char *const answers[] = {ok, NULL};
    start_server(answers);
    const int port = server.port;
    stop_server();
    struct sender *const sender = open_for(port, NULL);
    add(sender, 5);
    const uint64_t next = fail_once(sender);
    assert_true(sender_step(sender, false) == next);
    for (uint64_t at = 0; at != UINT64_MAX; at = sender_step(sender, true))
        assert_true(at < next);
    assert_int_equal(fake.dropped[DROP_AT_EXIT], 5);
    sender_close(sender);
}

/* A receiver that requests a longer delay than the end has gets no further attempt. */
static void the_end_is_too_early(void **state) {
    (void)state;
    const char *const answers[] = {much_later, ok, NULL};
    start_server(answers);
    struct sender *const sender = open_for(server.port, NULL);
    add(sender, 5);
    const uint64_t next = fail_once(sender);
    assert_true(next > monotonic_nano() + 40 * (uint64_t)NANO_PER_SECOND);
    assert_true(sender_step(sender, true) == UINT64_MAX);
    assert_int_equal(fake.dropped[DROP_AT_EXIT], 5);
    assert_int_equal(atomic_load(&server.requests), 1);
    sender_close(sender);
    stop_server();
}

/* Waits at least this long at the end, even on a busy machine; then the export is lost. */
static void an_end_gives_a_silent_receiver_a_fifth_of_a_second(void **state) {
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int hangs = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(hangs, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(hangs, 8), 0);
    assert_int_equal(getsockname(hangs, (struct sockaddr *)&address, &size), 0);
    struct sender *const sender = open_for(ntohs(address.sin_port), NULL);
    add(sender, 5);
    uint64_t asked = 0;
    for (uint64_t at = 0; at != UINT64_MAX;) {
        const uint64_t now = monotonic_nano();
        at = sender_step(sender, true);
        asked += at != UINT64_MAX && at > now ? at - now : 0;
    }
    assert_true(asked >= 200 * (uint64_t)NANO_PER_MILLI);
    assert_int_equal(fake.dropped[DROP_AT_EXIT], 5);
    sender_close(sender);
    close(hangs);
}

static void unsent_samples_are_counted(void **state) {
    (void)state;
    struct sender *const sender = open_for(1, NULL);
    add(sender, 5);
    sender_close(sender);
    assert_int_equal(fake.dropped[DROP_AT_EXIT], 5);
}

static void a_closed_lock_is_respected(void **state) {
    (void)state;
    const char *const answers[] = {ok, NULL};
    start_server(answers);
    struct sender *const sender = open_for(server.port, NULL);
    add(sender, 5);
    fake.lock_closed = true;
    assert_int_equal(sender_step(sender, true), 0);
    assert_int_equal(atomic_load(&server.requests), 0);
    fake.lock_closed = false;
    sender_close(sender);
    stop_server();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted),
        cmocka_unit_test(json_is_sent_and_its_response_read),
        cmocka_unit_test(fewer_than_no_profiles_cannot_be_rejected),
        cmocka_unit_test(a_warning_with_success),
        cmocka_unit_test(compressed),
        cmocka_unit_test(retried_on_request),
        cmocka_unit_test(refused_for_good),
        cmocka_unit_test(redirects_are_not_followed),
        cmocka_unit_test(no_receiver_is_waited_for_at_the_end),
        cmocka_unit_test(the_end_cuts_a_delay_short),
        cmocka_unit_test(the_end_is_too_early),
        cmocka_unit_test(an_end_gives_a_silent_receiver_a_fifth_of_a_second),
        cmocka_unit_test(unsent_samples_are_counted),
        cmocka_unit_test(a_closed_lock_is_respected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
