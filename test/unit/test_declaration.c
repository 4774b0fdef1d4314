/* Tests OpenTelemetry's declarative configuration: the effect of each key, and the warnings about a
 * wrong file. */
#include "unit.h"

#include "declare/declaration.h"
#include "declare/declared_settings.h"
#include "fake_capture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "file_format: \"1.0\"\n"

/* --- names of settings --- */

static const char *const options[] = {
#define OPTION(field, kind, name, standard, help) name,
#include "options.def"
#undef OPTION
};
enum { OPTION_COUNT = sizeof options / sizeof *options };

static void each_key_is_derived_from_its_variable_and_is_unique(void **state) {
    (void)state;
    char key[SETTING_NAME_BYTES];
    char other[SETTING_NAME_BYTES];
    for (size_t i = 0; i < OPTION_COUNT; i++)
        for (size_t j = 0; j < i; j++)
            if (declared_setting_key(options[i], key) && declared_setting_key(options[j], other))
                assert_string_not_equal(key, other);
    assert_true(declared_setting_key("OTEL_PROFILER_CPU_FREQUENCY", key));
    assert_string_equal(key, "cpu_frequency");
    assert_true(declared_setting_key("OTEL_PROFILES_EXPORTER", key));
    assert_string_equal(key, "exporter");
    assert_true(declared_setting_key("OTEL_EXPORTER_OTLP_CLIENT_KEY", key));
    assert_string_equal(key, "client_key");
    assert_false(declared_setting_key("OTEL_SERVICE_NAME", key));
    assert_false(declared_setting_key("OTEL_CONFIG_FILE", key));
}

static void each_declared_setting_is_an_option(void **state) {
    (void)state;
    static const char *const declared[] = {
#define DECLARED(name) name,
#include "declare/declared_settings.def"
#undef DECLARED
    };
    char key[SETTING_NAME_BYTES];
    char variable_name[SETTING_NAME_BYTES];
    for (size_t i = 0; i < sizeof declared / sizeof *declared; i++) {
        assert_true(declared_setting_key(declared[i], key));
        assert_int_equal(declared_setting_find(key, variable_name), SETTING_FOLLOWED);
    }
    assert_int_equal(declared_setting_find("endpoint", variable_name), SETTING_FOLLOWED);
    assert_string_equal(variable_name, "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT");
    assert_int_equal(declared_setting_find("log_file", variable_name), SETTING_OF_THE_START);
    assert_int_equal(declared_setting_find("CPU_FREQUENCY", variable_name), SETTING_UNKNOWN);
    assert_int_equal(declared_setting_find("", variable_name), SETTING_UNKNOWN);
}

/* --- whole files --- */

static char path[64];
static char log_path[64];

static void write_file(const char *at, const char *text, size_t size) {
    const int descriptor = open(at, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(descriptor >= 0);
    assert_true(write(descriptor, text, size) == (ssize_t)size);
    close(descriptor);
}

/* Returns what was logged since the last call. */
static const char *said(void) {
    static char text[16384];
    const int descriptor = open(log_path, O_RDONLY);
    const ssize_t size = descriptor < 0 ? 0 : read(descriptor, text, sizeof text - 1);
    if (descriptor >= 0)
        close(descriptor);
    unlink(log_path);
    text[size > 0 ? size : 0] = 0;
    return text;
}

static struct declaration *declare_with(const char *const *environment) {
    static struct capture_api api;
    api = fake_capture(environment);
    fake.config.config_file = path;
    fake.log.level = LOG_WARN;
    fake.log.file = log_path;
    return declaration_open(&api);
}

static struct declaration *declare(const char *text) {
    static const char *const nothing[] = {NULL};
    write_file(path, text, strlen(text));
    struct declaration *const declaration = declare_with(nothing);
    assert_non_null(declaration);
    return declaration;
}

static void assert_said(const char *wanted) {
    const char *const text = said();
    if (!strstr(text, wanted))
        print_message("said: %s\nwanted: %s\n", text, wanted);
    assert_non_null(strstr(text, wanted));
}

static void assert_refused(const char *text, const char *wanted) {
    struct declaration *const declaration = declare(text);
    assert_non_null(declaration->refused);
    assert_said(wanted);
    declaration_close(declaration);
}

static void assert_complains(const char *text, const char *wanted) {
    struct declaration *const declaration = declare(text);
    assert_null(declaration->refused);
    assert_said(wanted);
    declaration_close(declaration);
}

static void a_file_of_other_signals_changes_nothing(void **state) {
    (void)state;
    struct declaration *const declaration =
        declare(HEAD "disabled: false\nlog_level:\n"
                     "tracer_provider: {processors: [{batch: {exporter: {otlp_http: }}}]}\n"
                     "resource: {schema_url: x, detection/development: {detectors: [{host: }]}}\n"
                     "distribution: {other: {cpu_frequency: 1}}\nsomething_new: 1\n");
    assert_null(declaration->refused);
    assert_false(declaration->disabled);
    assert_int_equal(declaration->config.cpu_frequency, 99);
    assert_false(declaration->config.log_level_set);
    assert_int_equal(declaration->attributes.count, 0);
    assert_string_equal(said(), "");
    declaration_close(declaration);
}

static bool is_disabled(const char *text) {
    struct declaration *const declaration = declare(text);
    const bool disabled = declaration->disabled;
    declaration_close(declaration);
    return disabled;
}

static void disabled_is_a_truth_value(void **state) {
    (void)state;
    setenv("DECLARED_TRUTH", "true", 1);
    assert_true(is_disabled(HEAD "disabled: true\n"));
    assert_true(is_disabled(HEAD "disabled: ${DECLARED_TRUTH}\n"));
    assert_true(is_disabled(HEAD "disabled: ${DECLARED_NOTHING:-true}\n"));
    assert_false(is_disabled(HEAD "disabled: ${DECLARED_NOTHING}\n"));
    assert_string_equal(said(), "");
    assert_false(is_disabled(HEAD "disabled: \"true\"\n"));
    assert_said(":2: disabled is neither true nor false; taken as false");
    assert_false(is_disabled(HEAD "disabled: [true]\n"));
    assert_said(":2: disabled is neither true nor false; taken as false");
}

static enum log_level level_of(const char *word) {
    char text[64];
    snprintf(text, sizeof text, HEAD "log_level: %s\n", word);
    struct declaration *const declaration = declare(text);
    const enum log_level level = declaration->config.log_level;
    assert_true(declaration->config.log_level_set);
    declaration_close(declaration);
    return level;
}

/* Logs a line of severity n if the level is n or less. */
static void log_levels_are_those_of_severities(void **state) {
    (void)state;
    assert_int_equal(level_of("trace4"), LOG_DEBUG);
    assert_int_equal(level_of("debug"), LOG_DEBUG);
    assert_int_equal(level_of("debug2"), LOG_INFO);
    assert_int_equal(level_of("info"), LOG_INFO);
    assert_int_equal(level_of("warn"), LOG_WARN);
    assert_int_equal(level_of("error"), LOG_ERROR);
    assert_int_equal(level_of("error2"), LOG_NONE);
    assert_int_equal(level_of("fatal"), LOG_NONE);
    assert_string_equal(said(), "");
    assert_complains(HEAD "log_level: loud\n", ":2: log_level is not one of");
    assert_complains(HEAD "log_level: info5\n", ":2: log_level is not one of");
}

static const struct attribute_value *value_of(const struct declaration *declaration,
                                              const char *key) {
    const struct attribute *const attribute = attributes_find(&declaration->attributes, key);
    return attribute ? &attribute->value : NULL;
}

static void attributes_have_their_types(void **state) {
    (void)state;
    struct declaration *const d = declare(
        HEAD "resource:\n  attributes_list: \"service.name=listed,team=b%20c\"\n  attributes:\n"
             "  - {name: service.name, value: shop, type: string}\n"
             "  - {name: version, value: 1.10}\n  - {name: none, value: }\n"
             "  - {name: shard, value: 0x10, type: int}\n"
             "  - {name: ratio, value: 1, type: double}\n"
             "  - {name: canary, value: true, type: bool}\n");
    assert_string_equal(value_of(d, "service.name")->text, "shop");
    assert_string_equal(value_of(d, "team")->text, "b c");
    assert_string_equal(value_of(d, "version")->text, "1.10");
    assert_null(value_of(d, "none"));
    assert_true(value_of(d, "shard")->integer == 16);
    assert_true(value_of(d, "ratio")->kind == ATTRIBUTE_DOUBLE && value_of(d, "ratio")->real == 1);
    assert_true(value_of(d, "canary")->kind == ATTRIBUTE_BOOL && value_of(d, "canary")->truth);
    assert_string_equal(said(), "");
    declaration_close(d);
}

static void a_wrong_attribute_is_left_out_and_said(void **state) {
    (void)state;
#define ONE(attribute) HEAD "resource:\n  attributes:\n  - " attribute "\n  - {name: a, value: b}\n"
    static const char *const cases[][2] = {
        {ONE("{name: n, value: x, type: int}"),
         ":4: resource.attributes: n has a value that is not"},
        {ONE("{name: n, value: \"1\", type: int}"), "n has a value that is not of its type"},
        {ONE("{name: n, value: 1.5, type: int}"), "n has a value that is not of its type"},
        {ONE("{name: n, value: [a], type: string_array}"), "n is an array"},
        {ONE("{name: n, value: [a]}"), "n is an array"},
        {ONE("{name: n, value: 1, type: long}"), "n has a type that is not one of"},
        {ONE("{name: n, value: {a: b}}"), "n has no value that can be used"},
        {ONE("{name: n}"), "n has no value that can be used"},
        {ONE("{value: x}"), "an entry has no name"},
        {ONE("text"), "an entry has no name"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct declaration *const d = declare(cases[i][0]);
        assert_null(d->refused);
        assert_int_equal(d->attributes.count, 1);
        assert_said(cases[i][1]);
        declaration_close(d);
    }
    assert_complains(HEAD "resource: {attributes: text}\n", "is no list of attributes");
    assert_complains(HEAD "resource: {attributes_list: text}\n",
                     "is not a list of key=value pairs");
    assert_complains(HEAD "resource: {colour: red}\n", ":2: resource.colour is not known");
}

static void settings_are_read_by_the_parser_of_the_environment(void **state) {
    (void)state;
    static const char *const environment[] = {"OTEL_PROFILER_CPU_FREQUENCY=50",
                                              "OTEL_PROFILER_MAX_SAMPLES=77",
                                              "OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1",
                                              "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://b:1/x",
                                              "OTEL_PROFILER_REDACT=x",
                                              NULL};
    static const char text[] =
        HEAD "distribution:\n  otelprof:\n    types: [cpu, heap]\n    cpu_frequency: 199\n"
             "    wait_frequency: 23\n    lock_interval: 777\n    endpoint: http://c:1/y\n    "
             "headers: \"a=b\"\n    symbols: none\n    redact: \n"
             "    max_stack_depth: 32\n    exporter: \"otlp,console\"\n";
    write_file(path, text, strlen(text));
    struct declaration *const d = declare_with(environment);
    assert_int_equal(d->config.types, PROFILE_CPU | PROFILE_HEAP);
    assert_int_equal(d->config.cpu_frequency, 199);
    assert_int_equal(d->config.wait_frequency, 23);
    assert_int_equal(d->config.lock_interval, 777);
    assert_int_equal(d->config.max_samples, 77);
    assert_int_equal(d->config.max_stack_depth, 32);
    assert_int_equal(d->config.symbols, SYMBOLS_NONE);
    assert_int_equal(d->config.exporters, EXPORTER_OTLP | EXPORTER_CONSOLE);
    assert_string_equal(d->config.endpoint, "http://c:1/y");
    assert_string_equal(d->config.headers, "a=b");
    assert_string_equal(d->config.redact, "x");
    assert_string_equal(said(), "");
    declaration_close(d);
}

#define SETTING(line) HEAD "distribution:\n  otelprof:\n    " line "\n    max_samples: 5\n"

static void a_wrong_setting_is_said_with_its_line_and_the_rest_holds(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {SETTING("cpu_frequency: 5000"),
         ":4: OTEL_PROFILER_CPU_FREQUENCY=\"5000\" is not a frequency from 1 to 4000; using 99"},
        {SETTING("cpu_frequency: {a: 1}"),
         ":4: distribution.otelprof.cpu_frequency is neither a text nor a list of texts; it is"},
        {SETTING("cpu_freqency: 5"), ":4: distribution.otelprof.cpu_freqency is not known"},
        {SETTING("log_file: /tmp/x"),
         ":4: distribution.otelprof.log_file is decided when the process starts"},
        {SETTING("signal: 40"), "signal is decided when the process starts"},
        {SETTING("types: cpu,mmap,heap"), "types has what OTEL_PROFILER_TYPES did not have"},
        {SETTING("max_stack_depth: 512"), "is more than OTEL_PROFILER_MAX_STACK_DEPTH; using that"},
        {SETTING("exporter: otlp_file"), "exporter has otlp_file, which OTEL_PROFILES_EXPORTER"},
        {SETTING("headers: secret"), ":4: OTEL_EXPORTER_OTLP_HEADERS is not a list"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct declaration *const d = declare(cases[i][0]);
        assert_null(d->refused);
        assert_int_equal(d->config.max_samples, 5);
        assert_int_equal(d->config.cpu_frequency, 99);
        assert_int_equal(d->config.max_stack_depth, 128);
        assert_false(d->config.exporters & EXPORTER_OTLP_FILE);
        assert_said(cases[i][1]);
        declaration_close(d);
    }
}

static void what_is_to_be_hidden_stays_hidden(void **state) {
    (void)state;
    struct declaration *const d = declare(SETTING("redact: {a: b}"));
    assert_string_equal(d->config.redact, "*");
    assert_said("redact is neither a text nor a list of texts; using *");
    declaration_close(d);
}

static void labels_are_chosen_by_the_file(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"labels: [http.*, tenant]", "http.*,tenant"}, {"labels: none", ""}, {"labels: []", "*"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, HEAD "distribution:\n  otelprof:\n    %s\n", cases[i][0]);
        struct declaration *const d = declare(text);
        assert_string_equal(d->config.labels, cases[i][1]);
        assert_string_equal(said(), "");
        declaration_close(d);
    }
    struct declaration *const d = declare(SETTING("labels: {a: b}"));
    assert_string_equal(d->config.labels, "");
    assert_said("labels is neither a text nor a list of texts; using none");
    declaration_close(d);
}

static void a_file_that_is_no_configuration_refuses_the_process(void **state) {
    (void)state;
    assert_refused("", "is no mapping of keys to values; nothing is profiled");
    assert_refused("- a\n", "is no mapping of keys to values");
    assert_refused("disabled: false\n", ":1: has no file_format at its top; nothing is profiled");
    assert_refused("file_format: \"2.0\"\n", "has a file_format that is not known");
    assert_refused("file_format: \"0.1\"\n", "has a file_format that is not known");
    assert_refused("file_format: one\n", "has a file_format that is not known");
    assert_refused(HEAD "a: [\n", "is not well-formed YAML");
    assert_refused(HEAD "a: \"\xff\"\n", "is no text in UTF-8 or UTF-16");
    assert_refused(HEAD "disabled: ${A:?b}\n", ":2: has a malformed reference");
    assert_refused(HEAD "resource:\n  attributes:\n  - {name: a, value: \"${1}\"}\n",
                   ":4: has a malformed reference");
    declaration_close(declare("file_format: 0.4\n"));
    declaration_close(declare("file_format: 1.0-rc.2\n"));
    assert_string_equal(said(), "");
}

/* Refuses such a file because its second meaning might turn the profiler off, or name values to
 * hide. */
static void a_file_that_can_be_read_in_two_ways_refuses_the_process(void **state) {
    (void)state;
#define OURS(lines) HEAD "distribution:\n  otelprof:\n" lines
    assert_refused(HEAD "disabled: false\ndisabled: true\n",
                   ":3: has a key for the second time; nothing is profiled");
    assert_refused(HEAD HEAD, ":2: has a key for the second time");
    assert_refused(OURS("    redact: a\n    types: cpu\n    redact: b\n"),
                   ":6: has a key for the second time");
    assert_refused(HEAD "distribution: {otelprof: {}, otelprof: {redact: x}}\n", "second time");
    assert_refused(HEAD "resource: {attributes: [{name: a, name: b, value: c}]}\n", "second time");
    assert_refused(HEAD "---\n" HEAD "disabled: true\n", ":3: has a second document");
    assert_refused(HEAD "...\n: [ } no YAML\n", ":3: is not well-formed YAML");
    assert_refused(HEAD "distribution: [{otelprof: {redact: x}}]\n",
                   ":2: has a distribution that is no mapping; nothing is profiled");
    assert_refused(HEAD "distribution: {otelprof: [{redact: x}]}\n",
                   ":2: has a distribution.otelprof that is no mapping; nothing is profiled");
    assert_complains(HEAD "resource: [a]\n", ":2: resource is no mapping of keys to values");
    declaration_close(declare(HEAD "other: 1\nother: 2\ndistribution: {otelprof: null}\n...\n"));
    declaration_close(declare(HEAD "distribution:\nresource:\n"));
    assert_string_equal(said(), "");
}

static void an_alias_is_the_node_that_it_names(void **state) {
    (void)state;
    struct declaration *const d =
        declare(HEAD "x: &x [*x, *x]\ny: &shop {name: service.name, value: shop}\n"
                     "resource: {attributes: [*shop, *shop, {name: loop, value: *x}]}\n"
                     "distribution: &d {otelprof: *d}\n");
    assert_null(d->refused);
    assert_string_equal(value_of(d, "service.name")->text, "shop");
    assert_int_equal(d->attributes.count, 1);
    declaration_close(d);
    said();
}

static void assert_not_read(const char *wanted) {
    static const char *const nothing[] = {NULL};
    struct declaration *const declaration = declare_with(nothing);
    assert_non_null(declaration->refused);
    assert_said(wanted);
    declaration_close(declaration);
}

static void a_file_that_cannot_be_read_refuses_the_process(void **state) {
    (void)state;
    unlink(path);
    assert_not_read("does not exist; nothing is profiled");
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    assert_not_read("does not exist; nothing is profiled");
    unlink(path);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_not_read("is no regular file; nothing is profiled");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_not_read("is no regular file; nothing is profiled");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_not_read("is a folder; nothing is profiled");
    rmdir(path);
}

/* Refuses by size: parsing a large file takes long, and no clock bounds it. */
static void a_large_file_is_not_read(void **state) {
    (void)state;
    static char text[(1 << 20) + 1];
    static const char head[] = HEAD "#";
    memset(text, 'x', sizeof text);
    memcpy(text, head, sizeof head - 1);
    write_file(path, text, sizeof text);
    assert_not_read("is too large; nothing is profiled");
    write_file(path, text, sizeof text - 1);
    static const char *const nothing[] = {NULL};
    struct declaration *const declaration = declare_with(nothing);
    assert_null(declaration->refused);
    declaration_close(declaration);
}

static int make_paths(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_declaration.%d.yaml", (int)getpid());
    snprintf(log_path, sizeof log_path, "/tmp/test_declaration.%d.log", (int)getpid());
    return 0;
}

static int remove_paths(void **state) {
    (void)state;
    unlink(path);
    unlink(log_path);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_is_derived_from_its_variable_and_is_unique),
        cmocka_unit_test(each_declared_setting_is_an_option),
        cmocka_unit_test(a_file_of_other_signals_changes_nothing),
        cmocka_unit_test(disabled_is_a_truth_value),
        cmocka_unit_test(log_levels_are_those_of_severities),
        cmocka_unit_test(attributes_have_their_types),
        cmocka_unit_test(a_wrong_attribute_is_left_out_and_said),
        cmocka_unit_test(settings_are_read_by_the_parser_of_the_environment),
        cmocka_unit_test(a_wrong_setting_is_said_with_its_line_and_the_rest_holds),
        cmocka_unit_test(what_is_to_be_hidden_stays_hidden),
        cmocka_unit_test(labels_are_chosen_by_the_file),
        cmocka_unit_test(a_file_that_is_no_configuration_refuses_the_process),
        cmocka_unit_test(a_file_that_can_be_read_in_two_ways_refuses_the_process),
        cmocka_unit_test(an_alias_is_the_node_that_it_names),
        cmocka_unit_test(a_file_that_cannot_be_read_refuses_the_process),
        cmocka_unit_test(a_large_file_is_not_read),
    };
    return cmocka_run_group_tests(tests, make_paths, remove_paths);
}
