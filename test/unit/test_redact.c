/* Tests names that must not leave the process: which are hidden, and that no message or table has a
 * part of them, whatever way they came. */
#include "unit.h"

#include "console_text.h"
#include "encode/profile_export.h"
#include "encode/redact.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>

static struct symbol_line redacted(const char *globs, const char *function, const char *system_name,
                                   const char *file) {
    struct symbol_line line = {function, system_name, file, 7, 3, 0};
    redact_line(globs, &line);
    return line;
}

static void names(void **state) {
    (void)state;
    const char *const globs = "*secret*, key_?,exact";
    assert_string_equal(redact_name(globs, "my_secret_thread"), REDACTED);
    assert_string_equal(redact_name(globs, "key_a"), REDACTED);
    assert_string_equal(redact_name(globs, "key_ab"), "key_ab");
    assert_string_equal(redact_name(globs, "exact"), REDACTED);
    assert_string_equal(redact_name(globs, "inexact"), "inexact");
    assert_string_equal(redact_name(globs, "SECRET"), "SECRET");
    assert_string_equal(redact_name("*", ""), "");
    assert_string_equal(redact_name("", "x"), "x");
}

static void paths(void **state) {
    (void)state;
    assert_string_equal(redact_path("token.c", "/src/token.c"), REDACTED);
    assert_string_equal(redact_path("/src/*", "/src/token.c"), REDACTED);
    assert_string_equal(redact_path("*secret*", "/home/secret/a.c"), REDACTED);
    assert_string_equal(redact_path("src", "/src/token.c"), "/src/token.c");
    assert_string_equal(redact_path("lib?.so", "/lib/libm.so"), REDACTED);
    assert_string_equal(redact_path("*", ""), "");
}

static void both_names_go_if_one_fits(void **state) {
    (void)state;
    struct symbol_line line = redacted("vault::open", "vault::open", "_ZN5vault4openEv", "a.cpp");
    assert_string_equal(line.function, REDACTED);
    assert_string_equal(line.system_name, REDACTED);
    assert_string_equal(line.file, "a.cpp");
    line = redacted("*5vault4open*", "vault::open", "_ZN5vault4openEv", "a.cpp");
    assert_string_equal(line.function, REDACTED);
    line = redacted("a.*", "vault::open", "_ZN5vault4openEv", "/src/a.cpp");
    assert_string_equal(line.function, "vault::open");
    assert_string_equal(line.system_name, "_ZN5vault4openEv");
    assert_string_equal(line.file, REDACTED);
    assert_int_equal(line.line, 7);
    line = redacted("x", "plain", "", "");
    assert_string_equal(line.function, "plain");
    assert_string_equal(line.system_name, "");
    assert_string_equal(line.file, "");
}

static void names_that_cannot_be_demangled_are_redacted(void **state) {
    (void)state;
    const char *const mangled = "_ZN5vault4openEv";
    assert_string_equal(redacted("other", mangled, mangled, "").function, REDACTED);
    assert_string_equal(redacted("other", "_RNv5vault4open", "_RNv5vault4open", "").function,
                        REDACTED);
    assert_string_equal(redacted("", mangled, mangled, "").function, mangled);
}

/* --- through the exporters --- */

__attribute__((noinline)) static void topmost_classified_function(void) {
    __asm__ volatile("");
}

static struct harvest_module this_object(void) {
    static char path[4096];
    struct link_map *map;
    Dl_info info;
    assert_int_not_equal(dladdr1((void *)(uintptr_t)names, &info, (void **)&map, RTLD_DL_LINKMAP),
                         0);
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(size > 0);
    path[size] = 0;
    const uint64_t start = (uintptr_t)info.dli_fbase;
    return (struct harvest_module){.load_bias = map->l_addr,
                                   .start = start,
                                   .end = start + (64u << 20),
                                   .text_start = start,
                                   .text_end = start + (64u << 20),
                                   .path = path,
                                   .last_interval = UINT64_MAX};
}

struct capture_with_sample {
    struct harvest_module module;
    uint64_t frames[2];
    struct harvest_sample sample;
    struct capture_api api;
};

/* Takes one sample in topmost_classified_function, of this very object, called by an interpreted
 * function. */
static void open_capture(struct capture_with_sample *c, const char *const *environment) {
    c->module = this_object();
    c->frames[0] = (uintptr_t)topmost_classified_function;
    c->frames[1] = frame_interned(1, 0, 1);
    c->sample = (struct harvest_sample){.kind = SAMPLE_CPU,
                                        .tid = 7,
                                        .thread_name = "classified-io",
                                        .frames = c->frames,
                                        .frame_count = 2,
                                        .values = {[MEASURED_NANO] = 30000000}};
    c->api = fake_capture(environment);
    fake.samples = &c->sample;
    fake.sample_count = 1;
    fake.modules = &c->module;
    fake.module_count = 1;
}

static bool holds(const struct encoded *message, const char *text) {
    return memmem(message->bytes, message->size, text, strlen(text)) != NULL;
}

static struct encoded_export export_with(const char *const *environment) {
    struct capture_with_sample c;
    struct merge merge = {.items = {0}};
    open_capture(&c, environment);
    struct resource *const resource = resource_open(c.api.config, c.api.log, "");
    struct profile_exporter exporter = {
        .api = &c.api,
        .forms = FORM_PROTOBUF | FORM_JSON,
        .resource = resource,
        .symbolizer = symbolizer_open(c.api.config->symbols, c.api.guard.run)};
    assert_true(merge_harvest(&merge, &c.api));
    const struct encoded_export export =
        profile_export(&exporter, &merge, export_part_whole(&merge), 1000, 3000);
    otlp_writer_close(export.writer);
    merge_free(&merge);
    symbolizer_close(exporter.symbolizer);
    resource_close(resource);
    assert_non_null(export.protobuf.bytes);
    assert_non_null(export.json.bytes);
    return export;
}

/* Finds each word in the clear first: otherwise its absence would show nothing. */
static void nothing_of_it_is_in_a_message(void **state) {
    (void)state;
    static const char *const words[] = {"topmost_classified_function",
                                        "classified-io",
                                        "test_redact.c",
                                        "test_redact",
                                        "interpreted",
                                        "script.py"};
    static const char *const clear[] = {"OTEL_PROFILER_REDACT=", NULL};
    static const char *const hidden[] = {
        "OTEL_PROFILER_REDACT=*classified*,*test_redact*,*script*,interpreted", NULL};
    struct encoded_export before = export_with(clear);
    struct encoded_export after = export_with(hidden);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_true(holds(&before.protobuf, words[i]));
        assert_true(holds(&before.json, words[i]));
        if (holds(&after.protobuf, words[i]) || holds(&after.json, words[i]))
            fail_msg("%s", words[i]);
    }
    assert_true(holds(&after.protobuf, REDACTED));
    assert_true(holds(&after.protobuf, "unknown_service:" REDACTED));
}

static void console_with(const char *const *environment, char text[CONSOLE_BYTES]) {
    struct capture_with_sample c;
    open_capture(&c, environment);
    console_of(&c.api, text);
}

static void nothing_of_it_is_on_the_console(void **state) {
    (void)state;
    static const char *const by_name[] = {"OTEL_PROFILER_REDACT=*classified*,interpreted", NULL};
    static const char *const by_file[] = {"OTEL_PROFILER_REDACT=test_redact",
                                          "OTEL_PROFILER_SYMBOLS=none", NULL};
    char text[CONSOLE_BYTES];
    console_with(by_name + 1, text);
    assert_non_null(strstr(text, "topmost_classified_function"));
    assert_non_null(strstr(text, "interpreted"));
    console_with(by_name, text);
    assert_null(strstr(text, "classified"));
    assert_null(strstr(text, "interpreted"));
    assert_non_null(strstr(text, REDACTED));
    console_with(by_file + 1, text);
    assert_non_null(strstr(text, "[test_redact]\n"));
    console_with(by_file, text);
    assert_null(strstr(text, "test_redact"));
    assert_non_null(strstr(text, REDACTED "\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(paths),
        cmocka_unit_test(both_names_go_if_one_fits),
        cmocka_unit_test(names_that_cannot_be_demangled_are_redacted),
        cmocka_unit_test(nothing_of_it_is_in_a_message),
        cmocka_unit_test(nothing_of_it_is_on_the_console),
    };
    topmost_classified_function();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
