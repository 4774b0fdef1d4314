/* Tests the parser of the environment: precedence, defaults, and one exact warning per wrong
 * value. */
#include "unit.h"

#include "parsed_config.h"

#include <signal.h>

static void defaults(void **state) {
    (void)state;
    struct said said;
    const struct config c = parse_one(NULL, &said);
    assert_int_equal(said.count, 0);
    assert_false(c.disabled);
    assert_string_equal(c.service_name, "");
    assert_int_equal(c.resource, RESOURCE_IDENTITY);
    assert_int_equal(c.log_level, LOG_INFO);
    assert_int_equal(c.exporters, EXPORTER_OTLP);
    assert_string_equal(c.file, "");
    assert_int_equal(c.file_format, FILE_JSON);
    assert_string_equal(c.endpoint, "http://localhost:4318/v1development/profiles");
    assert_int_equal(c.protocol, PROTOCOL_HTTP_PROTOBUF);
    assert_int_equal(c.compression, COMPRESSION_NONE);
    assert_int_equal(c.timeout_ms, 10000);
    assert_int_equal(c.interval_ms, 10000);
    assert_int_equal(c.max_queue_bytes, 16777216);
    assert_int_equal(c.types, PROFILE_CPU | PROFILE_ALLOC | PROFILE_HEAP);
    assert_int_equal(c.cpu_frequency, 99);
    assert_int_equal(c.alloc_interval, 524288);
    assert_int_equal(c.max_stack_depth, 128);
    assert_int_equal(c.max_samples, 10000);
    assert_int_equal(c.symbols, SYMBOLS_LINES);
    assert_string_equal(c.exclude, "default");
    assert_string_equal(c.include, "");
    assert_int_equal(c.min_lifetime_ms, 1000);
    assert_int_equal(c.shutdown_timeout_ms, 2000);
    assert_false(c.shutdown_timeout_set);
    assert_int_equal(c.cpu_threshold, 0);
    assert_false(condition_is_set(c.condition));
}

static void the_first_of_two_counts(void **state) {
    (void)state;
    struct said said;
    const char *const environment[] = {"OTEL_PROFILER_CPU_FREQUENCY=10",
                                       "OTEL_PROFILER_CPU_FREQUENCY=20", NULL};
    assert_int_equal(parse(environment, &said).cpu_frequency, 10);
}

static void percentages_become_millionths(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t millionths;
    } cases[] = {
        {"1", 10000},        {"0.5", 5000},      {"0.0001", 1},        {"2.25", 22500},
        {"100", 1000000},    {"100.0", 1000000}, {".5", 10000},        {"5.", 10000},
        {"100.0001", 10000}, {"1e1", 10000},     {"-1", 10000},        {"1.00001", 10000},
        {"1000", 10000},     {"0", UINT64_MAX},  {"0.00", UINT64_MAX}, {"None", UINT64_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        struct said said;
        snprintf(text, sizeof text, "OTEL_PROFILER_MAX_OVERHEAD=%s", cases[i].text);
        assert_int_equal(parse_one(text, &said).max_overhead, cases[i].millionths);
    }
}

static void wrong_values(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"OTEL_EXPORTER_OTLP_TIMEOUT=abc",
         "OTEL_EXPORTER_OTLP_TIMEOUT=\"abc\" is not a number of milliseconds; using 10000"},
        {"OTEL_EXPORTER_OTLP_TIMEOUT=10s",
         "OTEL_EXPORTER_OTLP_TIMEOUT=\"10s\" is not a number of milliseconds; using 10000"},
        {"OTEL_EXPORTER_OTLP_TIMEOUT=-1",
         "OTEL_EXPORTER_OTLP_TIMEOUT=\"-1\" is not a number of milliseconds; using 10000"},
        {"OTEL_PROFILE_EXPORT_INTERVAL=0",
         "OTEL_PROFILE_EXPORT_INTERVAL=\"0\" is not a number of milliseconds; using 10000"},
        {"OTEL_PROFILE_EXPORT_INTERVAL=often",
         "OTEL_PROFILE_EXPORT_INTERVAL=\"often\" is not a number of milliseconds; using 10000"},
        {"OTEL_PROFILER_MIN_LIFETIME=1h",
         "OTEL_PROFILER_MIN_LIFETIME=\"1h\" is not a number of milliseconds; using 1000"},
        {"OTEL_PROFILER_SHUTDOWN_TIMEOUT= 5",
         "OTEL_PROFILER_SHUTDOWN_TIMEOUT=\" 5\" is not a number of milliseconds; using 2000"},
        {"OTEL_SDK_DISABLED=yes",
         "OTEL_SDK_DISABLED=\"yes\" is neither true nor false; using false"},
        {"OTEL_SDK_DISABLED=maybe",
         "OTEL_SDK_DISABLED=\"maybe\" is neither true nor false; using false"},
        {"OTEL_PROFILER_CPU_FREQUENCY=4001",
         "OTEL_PROFILER_CPU_FREQUENCY=\"4001\" is not a frequency from 1 to 4000; using 99"},
        {"OTEL_PROFILER_CPU_FREQUENCY=0",
         "OTEL_PROFILER_CPU_FREQUENCY=\"0\" is not a frequency from 1 to 4000; using 99"},
        {"OTEL_PROFILER_CPU_FREQUENCY=100000",
         "OTEL_PROFILER_CPU_FREQUENCY=\"100000\" is not a frequency from 1 to 4000; using 99"},
        {"OTEL_PROFILER_CPU_FREQUENCY=9.9",
         "OTEL_PROFILER_CPU_FREQUENCY=\"9.9\" is not a frequency from 1 to 4000; using 99"},
        {"OTEL_PROFILER_ALLOC_INTERVAL=-1",
         "OTEL_PROFILER_ALLOC_INTERVAL=\"-1\" is not a number of bytes; using 524288"},
        {"OTEL_PROFILER_ALLOC_INTERVAL=0",
         "OTEL_PROFILER_ALLOC_INTERVAL=\"0\" is not a number of bytes; using 524288"},
        {"OTEL_PROFILE_MAX_QUEUE_SIZE=16MiB",
         "OTEL_PROFILE_MAX_QUEUE_SIZE=\"16MiB\" is not a number of bytes; using 16777216"},
        {"OTEL_PROFILER_ALLOC_INTERVAL=99999999999999999999",
         "OTEL_PROFILER_ALLOC_INTERVAL=\"99999999999999999999\" is not a number of bytes; using "
         "524288"},
        {"OTEL_PROFILER_TYPES=cpu,,heap",
         "OTEL_PROFILER_TYPES=\"cpu,,heap\" is not all, nor a list of cpu, alloc, heap, heap_peak, "
         "off_cpu, sched_delay, lock, threads, mmap; using "
         "cpu,alloc,heap"},
        {"OTEL_PROFILER_TYPES=cpu,gpu",
         "OTEL_PROFILER_TYPES=\"cpu,gpu\" is not all, nor a list of cpu, alloc, heap, heap_peak, "
         "off_cpu, sched_delay, lock, threads, mmap; using cpu,alloc,heap"},
        {"OTEL_PROFILER_CONTEXT=default,otelprof", "OTEL_PROFILER_CONTEXT=\"default,otelprof\" is "
                                                   "not default, none, nor a list of sources of "
                                                   "context; using default"},
        {"OTEL_PROFILER_MAX_STACK_DEPTH=1025",
         "OTEL_PROFILER_MAX_STACK_DEPTH=\"1025\" is not a depth from 1 to 1024; using 128"},
        {"OTEL_PROFILER_MAX_STACK_DEPTH=5000",
         "OTEL_PROFILER_MAX_STACK_DEPTH=\"5000\" is not a depth from 1 to 1024; using 128"},
        {"OTEL_PROFILER_MAX_SAMPLES=many",
         "OTEL_PROFILER_MAX_SAMPLES=\"many\" is not a number from 1 on; using 10000"},
        {"OTEL_PROFILER_CPU_THRESHOLD=101",
         "OTEL_PROFILER_CPU_THRESHOLD=\"101\" is not a percentage from 0 to 100; using 0"},
        {"OTEL_PROFILER_CPU_THRESHOLD=80%",
         "OTEL_PROFILER_CPU_THRESHOLD=\"80%\" is not a percentage from 0 to 100; using 0"},
        {"OTEL_PROFILER_CONDITION=span>1h", "OTEL_PROFILER_CONDITION=\"span>1h\" is not none, nor "
                                            "a list of cpu>N%, rss>NMiB (KiB, GiB) "
                                            "and span>Ns (ms, min); using none"},
        {"OTEL_PROFILER_MAX_OVERHEAD=all",
         "OTEL_PROFILER_MAX_OVERHEAD=\"all\" is neither none nor a percentage from 0 to 100; using "
         "1"},
        {"OTEL_PROFILER_MAX_OVERHEAD=1.00001", "OTEL_PROFILER_MAX_OVERHEAD=\"1.00001\" is neither "
                                               "none nor a percentage from 0 to 100; using 1"},
        {"OTEL_PROFILER_MAX_OVERHEAD=1 %", "OTEL_PROFILER_MAX_OVERHEAD=\"1 %\" is neither none nor "
                                           "a percentage from 0 to 100; using 1"},
        {"OTEL_LOG_LEVEL=loud",
         "OTEL_LOG_LEVEL=\"loud\" is not one of none, error, warn, info, debug; using info"},
        {"OTEL_PROFILES_EXPORTER=file",
         "OTEL_PROFILES_EXPORTER=\"file\" is not a list of otlp, otlp_file, console, nor none "
         "alone; using otlp"},
        {"OTEL_PROFILES_EXPORTER=jaeger", "OTEL_PROFILES_EXPORTER=\"jaeger\" is not a list of "
                                          "otlp, otlp_file, console, nor none alone; using otlp"},
        {"OTEL_PROFILES_EXPORTER=none,otlp",
         "OTEL_PROFILES_EXPORTER=\"none,otlp\" is not a list of otlp, otlp_file, console, nor none "
         "alone; using otlp"},
        {"OTEL_PROFILES_EXPORTER=otlp,none",
         "OTEL_PROFILES_EXPORTER=\"otlp,none\" is not a list of otlp, otlp_file, console, nor none "
         "alone; using otlp"},
        {"OTEL_PROFILER_FILE_FORMAT=xml",
         "OTEL_PROFILER_FILE_FORMAT=\"xml\" is not one of json, protobuf; using json"},
        {"OTEL_PROFILER_RESOURCE=all",
         "OTEL_PROFILER_RESOURCE=\"all\" is not one of identity, full; using identity"},
        {"OTEL_PROFILER_SYMBOLS=all",
         "OTEL_PROFILER_SYMBOLS=\"all\" is not one of none, functions, lines; using lines"},
        {"OTEL_EXPORTER_OTLP_COMPRESSION=lz4",
         "OTEL_EXPORTER_OTLP_COMPRESSION=\"lz4\" is not one of none, gzip, zstd; using none"},
        {"OTEL_EXPORTER_OTLP_COMPRESSION=brotli",
         "OTEL_EXPORTER_OTLP_COMPRESSION=\"brotli\" is not one of none, gzip, zstd; using none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318",
         "OTEL_EXPORTER_OTLP_ENDPOINT=\"localhost:4318\" is not an http://, https:// or unix: "
         "URL; using http://localhost:4318"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT=ftp://a?key=secret",
         "OTEL_EXPORTER_OTLP_ENDPOINT is not an http://, https:// or unix: URL; using "
         "http://localhost:4318"},
        {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=ftp://localhost",
         "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=\"ftp://localhost\" is not an http://, https:// or "
         "unix: URL; using http://localhost:4318"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL=thrift",
         "OTEL_EXPORTER_OTLP_PROTOCOL=\"thrift\" is not one of http/protobuf, http/json, "
         "grpc; using "
         "http/protobuf"},
        {"OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=smoke",
         "OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=\"smoke\" is not one of http/protobuf, http/json, "
         "grpc; "
         "using http/protobuf"},
        {"OTEL_EXPORTER_OTLP_INSECURE=1",
         "OTEL_EXPORTER_OTLP_INSECURE=\"1\" is neither true nor false; using false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct said said;
        (void)parse_one(cases[i][0], &said);
        assert_int_equal(said.count, 1);
        assert_string_equal(said.last, cases[i][1]);
    }
}

static void signals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int number; /* 0: the text is refused */
    } cases[] = {
        {"SIGPROF", SIGPROF},
        {"SIGRTMIN", 34},
        {"SIGRTMIN+5", 39},
        {"SIGRTMAX", 64},
        {"SIGRTMAX-4", 60},
        {"26", 26},
        {"SIGKILL", 0},
        {"9", 0},
        {"4", 0},
        {"5", 0},
        {"6", 0},
        {"7", 0},
        {"8", 0},
        {"11", 0},
        {"33", 0},
        {"SIGRTMIN+99", 0},
        {"65", 0},
        {"profile", 0},
        {"0", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char entry[64];
        char expected[128];
        struct said said;
        const int number = cases[i].number;
        snprintf(entry, sizeof entry, "OTEL_PROFILER_SIGNAL=%s", cases[i].text);
        assert_int_equal(parse_one(entry, &said).signal, number ? number : SIGPROF);
        assert_int_equal(said.count, number ? 0 : 1);
        snprintf(expected, sizeof expected, "OTEL_PROFILER_SIGNAL=\"%s\" is not a signal",
                 cases[i].text);
        if (number == 0)
            assert_non_null(strstr(said.last, expected));
    }
}

static void control_characters_are_not_repeated(void **state) {
    (void)state;
    struct said said;
    (void)parse_one("OTEL_EXPORTER_OTLP_TIMEOUT=a\nb", &said);
    assert_non_null(strstr(said.last, "\"a\\x0ab\""));
}

static void exporters(void **state) {
    (void)state;
    static const struct {
        const char *entry;
        unsigned bits;
    } cases[] = {
        {"OTEL_PROFILES_EXPORTER=otlp", EXPORTER_OTLP},
        {"OTEL_PROFILES_EXPORTER=OTLP_File", EXPORTER_OTLP_FILE},
        {"OTEL_PROFILES_EXPORTER=console, otlp", EXPORTER_OTLP | EXPORTER_CONSOLE},
        {"OTEL_PROFILES_EXPORTER=otlp,otlp_file,console",
         EXPORTER_OTLP | EXPORTER_OTLP_FILE | EXPORTER_CONSOLE},
        {"OTEL_PROFILES_EXPORTER=None", 0},
        {"OTEL_PROFILES_EXPORTER=", EXPORTER_OTLP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct said said;
        assert_int_equal(parse_one(cases[i].entry, &said).exporters, cases[i].bits);
        assert_int_equal(said.count, 0);
    }
}

static void protocols_and_formats(void **state) {
    (void)state;
    struct said said;
    const char *const environment[] = {"OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
                                       "OTEL_PROFILER_FILE=-", "OTEL_PROFILER_FILE_FORMAT=Protobuf",
                                       NULL};
    const struct config c = parse(environment, &said);
    assert_int_equal(c.protocol, PROTOCOL_HTTP_JSON);
    assert_string_equal(c.file, "-");
    assert_int_equal(c.file_format, FILE_PROTOBUF);
    assert_int_equal(said.count, 0);
}

static void types(void **state) {
    (void)state;
    struct said said;
    assert_int_equal(parse_one("OTEL_PROFILER_TYPES= CPU , heap", &said).types,
                     PROFILE_CPU | PROFILE_HEAP);
    assert_int_equal(said.count, 0);
}

static void secrets_are_not_said(void **state) {
    (void)state;
    char small[64];
    struct config config;
    struct said said = {0};
    const char *const environment[] = {"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20very-"
                                       "secret-and-far-too-long-to-keep-here",
                                       NULL};
    config_parse(environment, &config, small, sizeof small, keep, &said);
    assert_int_equal(said.count, 1);
    assert_null(strstr(said.last, "secret"));
    assert_string_equal(config.headers, "");
}

static void mmap_alone_brings_alloc(void **state) {
    (void)state;
    struct said said;
    assert_int_equal(parse_one("OTEL_PROFILER_TYPES=mmap", &said).types,
                     PROFILE_MMAP | PROFILE_ALLOC);
    assert_int_equal(said.count, 1);
    assert_string_equal(said.last, "OTEL_PROFILER_TYPES=\"mmap\" has neither alloc nor heap, which "
                                   "mmap adds to; using mmap,alloc");
    assert_int_equal(parse_one("OTEL_PROFILER_TYPES=cpu,MMAP", &said).types,
                     PROFILE_CPU | PROFILE_MMAP | PROFILE_ALLOC);
    assert_int_equal(said.count, 1);
    assert_int_equal(parse_one("OTEL_PROFILER_TYPES=heap,mmap", &said).types,
                     PROFILE_HEAP | PROFILE_MMAP);
    assert_int_equal(said.count, 0);
}

static void a_peak_brings_its_heap(void **state) {
    (void)state;
    struct said said;
    assert_int_equal(parse_one("OTEL_PROFILER_TYPES=cpu,heap_peak", &said).types,
                     PROFILE_CPU | PROFILE_HEAP | PROFILE_HEAP_PEAK);
    assert_int_equal(parse_one("OTEL_PROFILER_TYPES=mmap,heap_peak", &said).types,
                     PROFILE_HEAP | PROFILE_HEAP_PEAK | PROFILE_MMAP);
    assert_int_equal(said.count, 0);
}

static void zero_is_a_lifetime(void **state) {
    (void)state;
    struct said said;
    assert_int_equal(parse_one("OTEL_PROFILER_MIN_LIFETIME=0", &said).min_lifetime_ms, 0);
    assert_int_equal(said.count, 0);
}

static void a_huge_environment_is_searched_to_its_end(void **state) {
    (void)state;
    enum { ENTRIES = 20000 };
    static const char *environment[ENTRIES + 2];
    struct said said;
    for (size_t i = 0; i < ENTRIES; i++)
        environment[i] = i % 2 ? "OTEL_PROFILER_CPU_FREQUENCY_NOT=5" : "NO_EQUALS_SIGN";
    environment[ENTRIES] = "OTEL_PROFILER_CPU_FREQUENCY=11";
    assert_int_equal(parse(environment, &said).cpu_frequency, 11);
    assert_int_equal(said.count, 0);
}

static void an_explicit_shutdown_timeout_is_known(void **state) {
    (void)state;
    struct said said;
    const struct config c = parse_one("OTEL_PROFILER_SHUTDOWN_TIMEOUT=2000", &said);
    assert_true(c.shutdown_timeout_set);
    assert_false(parse_one("OTEL_PROFILER_SHUTDOWN_TIMEOUT=x", &said).shutdown_timeout_set);
}

static void a_config_file_is_named(void **state) {
    (void)state;
    struct said said;
    assert_string_equal(parse_one("OTEL_CONFIG_FILE=/etc/otel.yaml", &said).config_file,
                        "/etc/otel.yaml");
    assert_int_equal(said.count, 0);
    assert_string_equal(parse_one("OTEL_CONFIG_FILE=", &said).config_file, "");
}

static void a_password_is_not_shown(void **state) {
    (void)state;
    static const char *const cases[] = {"OTEL_EXPORTER_OTLP_ENDPOINT=ftp://me:pa55@host",
                                        "OTEL_EXPORTER_OTLP_ENDPOINT=me:pa55@host:4318",
                                        "OTEL_EXPORTER_OTLP_ENDPOINT=me@a:1",
                                        "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=ftp://me:pa55@host"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct said said;
        (void)parse_one(cases[i], &said);
        assert_int_equal(said.count, 1);
        assert_null(strstr(said.last, "me"));
        assert_non_null(strstr(said.last, "ENDPOINT is not"));
    }
}

static void a_list_too_long_to_redact_by_redacts_everything(void **state) {
    (void)state;
    static char entry[sizeof buffer + 64] = "OTEL_PROFILER_REDACT=";
    struct said said;
    memset(entry + strlen(entry), 'x', sizeof buffer);
    assert_string_equal(parse_one(entry, &said).redact, "*");
    assert_int_equal(said.count, 1);
    assert_string_equal(said.last, "OTEL_PROFILER_REDACT is too long to keep; using *");
    assert_string_equal(parse_one("OTEL_PROFILER_REDACT=a,b*", &said).redact, "a,b*");
    assert_string_equal(parse_one("OTEL_PROFILER_REDACT=", &said).redact, "");
    assert_int_equal(said.count, 0);
}

static void labels_that_cannot_be_chosen_are_not_sent(void **state) {
    (void)state;
    static char entry[sizeof buffer + 64] = "OTEL_PROFILER_LABELS=";
    struct said said;
    memset(entry + strlen(entry), 'x', sizeof buffer);
    assert_string_equal(parse_one(entry, &said).labels, "");
    assert_int_equal(said.count, 1);
    assert_string_equal(said.last, "OTEL_PROFILER_LABELS is too long to keep; using none");
    assert_string_equal(parse_one("OTEL_PROFILER_LABELS=a,b*", &said).labels, "a,b*");
    assert_string_equal(parse_one("OTEL_PROFILER_LABELS=None", &said).labels, "");
    assert_string_equal(parse_one("OTEL_PROFILER_LABELS=", &said).labels, "*");
    assert_string_equal(parse_one(NULL, &said).labels, "*");
    assert_int_equal(said.count, 0);
}

static void lists_of_pairs_are_checked(void **state) {
    (void)state;
    struct said said;
    struct config c = parse_one("OTEL_RESOURCE_ATTRIBUTES=a=b,novalue", &said);
    assert_string_equal(said.last, "OTEL_RESOURCE_ATTRIBUTES=\"a=b,novalue\" is not a list of "
                                   "key=value pairs; using none");
    assert_string_equal(c.resource_attributes, "");
    c = parse_one("OTEL_EXPORTER_OTLP_PROFILES_HEADERS=secret", &said);
    assert_string_equal(said.last,
                        "OTEL_EXPORTER_OTLP_HEADERS is not a list of key=value pairs; using none");
    assert_string_equal(c.headers, "");
    c = parse_one("OTEL_EXPORTER_OTLP_HEADERS=a=%20", &said);
    assert_int_equal(said.count, 0);
    assert_string_equal(c.headers, "a=%20");
}

/* Checks the list however little room is left: no other code reports a wrong pair. */
static void a_long_list_of_pairs_is_checked(void **state) {
    (void)state;
    static char entry[sizeof buffer] = "OTEL_EXPORTER_OTLP_HEADERS=novalue";
    struct said said;
    memset(entry + strlen(entry), 'x', sizeof buffer * 2 / 3);
    assert_string_equal(parse_one(entry, &said).headers, "");
    assert_int_equal(said.count, 1);
    assert_string_equal(said.last,
                        "OTEL_EXPORTER_OTLP_HEADERS is not a list of key=value pairs; using none");
}

static void settings_that_were_set_are_known(void **state) {
    (void)state;
    struct said said;
    struct config c = parse_one(NULL, &said);
    assert_false(c.log_level_set);
    assert_false(c.endpoint_set);
    assert_true(parse_one("OTEL_LOG_LEVEL=info", &said).log_level_set);
    assert_true(parse_one("OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1", &said).endpoint_set);
    assert_true(parse_one("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://a:1", &said).endpoint_set);
    assert_false(parse_one("OTEL_EXPORTER_OTLP_ENDPOINT=nowhere", &said).endpoint_set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(a_password_is_not_shown),
        cmocka_unit_test(a_list_too_long_to_redact_by_redacts_everything),
        cmocka_unit_test(labels_that_cannot_be_chosen_are_not_sent),
        cmocka_unit_test(the_first_of_two_counts),
        cmocka_unit_test(percentages_become_millionths),
        cmocka_unit_test(wrong_values),
        cmocka_unit_test(signals),
        cmocka_unit_test(control_characters_are_not_repeated),
        cmocka_unit_test(exporters),
        cmocka_unit_test(protocols_and_formats),
        cmocka_unit_test(types),
        cmocka_unit_test(secrets_are_not_said),
        cmocka_unit_test(mmap_alone_brings_alloc),
        cmocka_unit_test(a_peak_brings_its_heap),
        cmocka_unit_test(zero_is_a_lifetime),
        cmocka_unit_test(a_huge_environment_is_searched_to_its_end),
        cmocka_unit_test(an_explicit_shutdown_timeout_is_known),
        cmocka_unit_test(a_config_file_is_named),
        cmocka_unit_test(lists_of_pairs_are_checked),
        cmocka_unit_test(a_long_list_of_pairs_is_checked),
        cmocka_unit_test(settings_that_were_set_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
