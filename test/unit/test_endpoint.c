/* Tests where exports go: to endpoints of HTTP, gRPC and sockets; and the handling of wrong ones.
 */
#include "unit.h"

#include "parsed_config.h"

static void endpoints(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1", "http://a:1/v1development/profiles"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1/", "http://a:1/v1development/profiles"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT=HTTPS://a/base", "HTTPS://a/base/v1development/profiles"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a?k=/#f", "http://a/v1development/profiles?k=/"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a/b/?k=v", "http://a/b/v1development/profiles?k=v"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a#f/", "http://a/v1development/profiles"},
        {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://a:1", "http://a:1/"},
        {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://a:1?k=v", "http://a:1/?k=v"},
        {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://a:1/x?k=v", "http://a:1/x?k=v"},
        {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://a:1/x", "http://a:1/x"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT=", "http://localhost:4318/v1development/profiles"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct said said;
        assert_string_equal(parse_one(cases[i][0], &said).endpoint, cases[i][1]);
        assert_int_equal(said.count, 0);
    }
}

#define CALL "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

/* The order in the environment does not matter. */
static void endpoints_of_grpc(void **state) {
    (void)state;
    static const char *const cases[][4] = {
        {"", "", "http://localhost:4317" CALL, ""},
        {"http://a:1", "", "http://a:1" CALL, ""},
        {"https://a/", "", "https://a" CALL, ""},
        {"http://[::1]:1/base?x", "", "http://[::1]:1" CALL, ""},
        {"a:4317", "", "https://a:4317" CALL, ""},
        {"a:4317", "false", "https://a:4317" CALL, ""},
        {"a:4317", "TRUE", "http://a:4317" CALL, ""},
        {"a", "true", "http://a" CALL, ""},
        {"[::1]:4317", "true", "http://[::1]:4317" CALL, ""},
        {"[::1]", "", "https://[::1]" CALL, ""},
        {"https://a:1", "true", "https://a:1" CALL, ""},
        {"unix:/run/x", "", "http://localhost" CALL, "/run/x"},
        {"unix:///run/x", "true", "http://localhost" CALL, "/run/x"},
    };
    static const char *const names[] = {"OTEL_EXPORTER_OTLP_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *const *const one = cases[i / 2];
        char endpoint[128];
        char insecure[64];
        snprintf(endpoint, sizeof endpoint, "%s=%s", names[i % 2], one[0]);
        snprintf(insecure, sizeof insecure, "OTEL_EXPORTER_OTLP_INSECURE=%s", one[1]);
        const char *const environment[] = {endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=gRPC", insecure,
                                           NULL};
        struct said said;
        const struct config c = parse(environment, &said);
        assert_int_equal(said.count, 0);
        assert_int_equal(c.protocol, PROTOCOL_GRPC);
        assert_string_equal(c.endpoint, one[2]);
        assert_string_equal(c.unix_socket, one[3]);
    }
}

static void wrong_endpoints_of_grpc(void **state) {
    (void)state;
    static const char *const wrong[] = {"ftp://a", "dns:///a:1", ":4317",          "a:0",
                                        "a:65536", "a:1:2",      "a:port",         "::1",
                                        "[::1",    "[]:1",       "[::1]x",         "a/path",
                                        "a b",     "unix:",      "unix:x.sock",    "unix://h/x",
                                        "unix:/",  "http://",    "unix-abstract:x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char endpoint[128];
        char expected[256];
        snprintf(endpoint, sizeof endpoint, "OTEL_EXPORTER_OTLP_ENDPOINT=%s", wrong[i]);
        snprintf(expected, sizeof expected,
                 "OTEL_EXPORTER_OTLP_ENDPOINT=\"%s\" is not an http://, https:// or unix: URL, nor "
                 "host:port; using http://localhost:4317",
                 wrong[i]);
        const char *const environment[] = {endpoint, "OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=grpc",
                                           NULL};
        struct said said;
        const struct config c = parse(environment, &said);
        assert_string_equal(said.last, expected);
        assert_int_equal(said.count, 1);
        assert_string_equal(c.endpoint, "http://localhost:4317" CALL);
        assert_string_equal(c.unix_socket, "");
    }
}

static void a_socket_is_an_endpoint_of_http(void **state) {
    (void)state;
    static const char *const names[] = {"OTEL_EXPORTER_OTLP_ENDPOINT=unix:///run/x.sock",
                                        "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=unix:/run/x.sock"};
    for (size_t i = 0; i < 2; i++) {
        struct said said;
        const struct config c = parse_one(names[i], &said);
        assert_int_equal(said.count, 0);
        assert_string_equal(c.endpoint, "http://localhost/v1development/profiles");
        assert_string_equal(c.unix_socket, "/run/x.sock");
    }
}

/* Gives sockets, which have no scheme: certificates request TLS, and the variables named INSECURE
 * overrule them. */
static void tls_through_a_socket_is_asked_for(void **state) {
    (void)state;
#define V(rest) "OTEL_EXPORTER_OTLP_" rest
    static const struct {
        bool tls;
        const char *variables[3];
        int complaints;
    } cases[] = {
        {false, {NULL}, 0},
        {false, {V("INSECURE=")}, 0},
        {false, {V("INSECURE=perhaps")}, 1},
        {true, {V("INSECURE=False")}, 0},
        {true, {V("PROFILES_INSECURE=false")}, 0},
        {true, {V("PROFILES_INSECURE=false"), V("INSECURE=true")}, 0},
        {true, {V("PROFILES_INSECURE=perhaps"), V("INSECURE=false")}, 1},
        {false, {V("PROFILES_INSECURE=true"), V("INSECURE=false")}, 0},
        {true, {V("CERTIFICATE=ca.pem")}, 0},
        {true, {V("PROFILES_CERTIFICATE=ca.pem")}, 0},
        {true, {V("CLIENT_KEY=key.pem")}, 0},
        {true, {V("PROFILES_CLIENT_CERTIFICATE=client.pem")}, 0},
        {false, {V("CERTIFICATE=")}, 0},
        {false, {V("CERTIFICATE=ca.pem"), V("INSECURE=true")}, 0},
    };
#undef V
    static const char *const protocols[] = {"http/protobuf", "http/json", "grpc"};
    for (size_t i = 0; i < 3 * sizeof cases / sizeof *cases; i++) {
        char protocol[64];
        snprintf(protocol, sizeof protocol, "OTEL_EXPORTER_OTLP_PROTOCOL=%s", protocols[i % 3]);
        const char *const environment[] = {"OTEL_EXPORTER_OTLP_ENDPOINT=unix:/x", protocol,
                                           cases[i / 3].variables[0], cases[i / 3].variables[1],
                                           NULL};
        struct said said;
        const struct config c = parse(environment, &said);
        assert_int_equal(said.count, cases[i / 3].complaints);
        assert_string_equal(c.unix_socket, "/x");
        assert_int_equal(strncmp(c.endpoint, "https://localhost/", 18) == 0, cases[i / 3].tls);
        assert_int_equal(strncmp(c.endpoint, "http://localhost/", 17) == 0, !cases[i / 3].tls);
    }
}

/* Never sends in the clear because there was no room for the name of a file. */
static void tls_was_asked_for_even_if_the_name_is_lost(void **state) {
    (void)state;
    static char certificate[sizeof buffer + 64] = "OTEL_EXPORTER_OTLP_CERTIFICATE=/";
    const size_t start = strlen(certificate);
    memset(certificate + start, 'x', sizeof certificate - 1 - start);
    const char *const environment[] = {"OTEL_EXPORTER_OTLP_ENDPOINT=unix:/x", certificate, NULL};
    struct said said;
    const struct config c = parse(environment, &said);
    assert_string_equal(said.last,
                        "OTEL_EXPORTER_OTLP_CERTIFICATE is too long to keep; using none");
    assert_string_equal(c.certificate, "");
    assert_string_equal(c.endpoint, "https://localhost/v1development/profiles");
}

/* A sockaddr_un holds 107 bytes of a path and its end. */
static void a_socket_whose_path_is_too_long_is_refused(void **state) {
    (void)state;
    char entry[256] = "OTEL_EXPORTER_OTLP_ENDPOINT=unix:/";
    const size_t start = strlen(entry) - 1;
    struct said said;
    memset(entry + start + 1, 'x', 106);
    assert_int_equal(strlen(parse_one(entry, &said).unix_socket), 107);
    assert_int_equal(said.count, 0);
    entry[start + 107] = 'x';
    assert_string_equal(parse_one(entry, &said).unix_socket, "");
    assert_string_equal(said.last, "OTEL_EXPORTER_OTLP_ENDPOINT is too long to keep; using "
                                   "http://localhost:4318");
}

/* Gives a complete endpoint or the default, whatever the room, and writes nothing behind it. */
static void an_endpoint_fits_or_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"http://a:1", "unix:/run/x.sock", "a:1"};
    for (size_t i = 0; i < 3; i++) {
        char entry[128];
        snprintf(entry, sizeof entry, "OTEL_EXPORTER_OTLP_ENDPOINT=%s", texts[i]);
        const char *const environment[] = {entry, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", NULL};
        bool fitted = false;
        for (size_t size = 0; size < 160; size++) {
            char small[161];
            struct config c;
            struct said said = {0};
            memset(small, '#', sizeof small);
            config_parse(environment, &c, small, size, keep, &said);
            assert_int_equal(small[size], '#');
            assert_string_equal(strrchr(c.endpoint, '/'), "/Export");
            const bool is_default = strncmp(c.endpoint, "http://localhost:4317/", 22) == 0;
            assert_int_equal(is_default, said.count == 1);
            fitted |= !is_default;
        }
        assert_true(fitted);
    }
}

static void the_profiles_form_wins(void **state) {
    (void)state;
    struct said said;
    const char *const environment[] = {"OTEL_EXPORTER_OTLP_TIMEOUT=1",
                                       "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT=2",
                                       "OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION=GZip",
                                       "OTEL_EXPORTER_OTLP_COMPRESSION=zstd", NULL};
    const struct config c = parse(environment, &said);
    assert_int_equal(c.timeout_ms, 2);
    assert_int_equal(c.compression, COMPRESSION_GZIP);
    assert_int_equal(said.count, 0);
}

static void a_wrong_profiles_form_falls_back(void **state) {
    (void)state;
    struct said said;
    const char *const environment[] = {"OTEL_EXPORTER_OTLP_TIMEOUT=7",
                                       "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT=x", NULL};
    assert_int_equal(parse(environment, &said).timeout_ms, 7);
    assert_int_equal(said.count, 1);
    assert_string_equal(said.last, "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT=\"x\" is not a number of "
                                   "milliseconds; using OTEL_EXPORTER_OTLP_TIMEOUT");
}

static void an_endpoint_that_does_not_fit_is_said_to_be_too_long(void **state) {
    (void)state;
    char small[32];
    struct config config;
    struct said said = {0};
    const char *const environment[] = {"OTEL_EXPORTER_OTLP_ENDPOINT=http://a.very.long.name/path",
                                       NULL};
    config_parse(environment, &config, small, sizeof small, keep, &said);
    assert_int_equal(said.count, 1);
    assert_string_equal(said.last, "OTEL_EXPORTER_OTLP_ENDPOINT is too long to keep; using "
                                   "http://localhost:4318");
    assert_string_equal(config.endpoint, "http://localhost:4318/v1development/profiles");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints),
        cmocka_unit_test(endpoints_of_grpc),
        cmocka_unit_test(wrong_endpoints_of_grpc),
        cmocka_unit_test(a_socket_is_an_endpoint_of_http),
        cmocka_unit_test(tls_through_a_socket_is_asked_for),
        cmocka_unit_test(tls_was_asked_for_even_if_the_name_is_lost),
        cmocka_unit_test(a_socket_whose_path_is_too_long_is_refused),
        cmocka_unit_test(an_endpoint_fits_or_is_refused),
        cmocka_unit_test(the_profiles_form_wins),
        cmocka_unit_test(a_wrong_profiles_form_falls_back),
        cmocka_unit_test(an_endpoint_that_does_not_fit_is_said_to_be_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
