/* Tests a receiver's response: read to the end of its page and no further, and shown as it is. */
#include "unit.h"

#include "export/json_reader.h"
#include "export/response.h"

#include <sys/mman.h>
#include <unistd.h>

/* Puts the text at the end of a page, with unreadable memory behind it. */
static char *at_the_edge(const char *text, size_t size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *const pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_true(size <= page);
    mprotect(pages + page, page, PROT_NONE);
    memcpy(pages + page - size, text, size);
    return pages + page - size;
}

static struct partial_success read_as(bool is_json, const char *text, size_t size) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *const copy = at_the_edge(text, size);
    struct partial_success result;
    response_read((const uint8_t *)copy, size, is_json, &result);
    munmap((void *)(((uintptr_t)copy + size - 1) / page * page), 2 * page);
    return result;
}

static struct partial_success read_response(const char *text, size_t size) {
    return read_as(true, text, size);
}

static void assert_response(const char *json, int64_t rejected, const char *message) {
    const struct partial_success result = read_response(json, strlen(json));
    assert_int_equal(result.rejected_profiles, rejected);
    assert_string_equal(result.message, message);
}

static void responses(void **state) {
    (void)state;
    assert_response("{}", 0, "");
    assert_response(" { } \n", 0, "");
    assert_response("{\"partialSuccess\":{}}", 0, "");
    assert_response("{\"partialSuccess\":null}", 0, "");
    assert_response("{\"partialSuccess\":{\"rejectedProfiles\":\"7\",\"errorMessage\":\"no\"}}", 7,
                    "no");
    assert_response(
        "{ \"partial_success\" : { \"error_message\" : \"no\" ,\t\"rejected_profiles\" : "
        "9223372036854775807 } }",
        INT64_MAX, "no");
    assert_response("{\"new\":[1,-2.5e3,{\"a\":[]},true,false,null,\"x\\\"]\"],\"partialSuccess\":"
                    "{\"more\":{\"deep\":[[[]]]},\"rejectedProfiles\":1}}",
                    1, "");
    assert_response("{\"partialSuccess\":{\"errorMessage\":\"\\u00fc\\ud83d\\udd25\\/\\\\\"}}", 0,
                    "\xc3\xbc\xf0\x9f\x94\xa5/\\");
}

/* Keeps messages unchanged: the log escapes them, and a NUL does not end them. */
static void messages_are_kept_as_they_are(void **state) {
    (void)state;
    assert_response("{\"partialSuccess\":{\"errorMessage\":\"a\\nb\\u001b[2J\\u0000c\"}}", 0,
                    "a\nb\x1b[2J\xef\xbf\xbd"
                    "c");
    assert_response("{\"partialSuccess\":{\"errorMessage\":\"\\ud800x\\udc00\xff\"}}", 0,
                    "\xef\xbf\xbdx\xef\xbf\xbd\xff");
}

static void garbage_yields_nothing(void **state) {
    (void)state;
    static const char *const cases[] = {
        "",
        "x",
        "[]",
        "\"\"",
        "7",
        "null null",
        "{",
        "{]",
        "{}}",
        "{}{}",
        "{\"partialSuccess\":{\"rejectedProfiles\":7}",
        "{\"partialSuccess\":{\"rejectedProfiles\":7}}x",
        "{\"partialSuccess\":{\"rejectedProfiles\":7,}}",
        "{\"partialSuccess\":{\"rejectedProfiles\":7 \"a\":1}}",
        "{\"partialSuccess\":{\"rejectedProfiles\":1.5}}",
        "{\"partialSuccess\":{\"rejectedProfiles\":9223372036854775808}}",
        "{\"partialSuccess\":{\"rejectedProfiles\":\"-9223372036854775809\"}}",
        "{\"partialSuccess\":{\"rejectedProfiles\":\"\"}}",
        "{\"partialSuccess\":{\"rejectedProfiles\":[7]}}",
        "{\"partialSuccess\":{\"errorMessage\":7}}",
        "{\"partialSuccess\":{\"errorMessage\":\"\\x\"}}",
        "{\"partialSuccess\":{\"errorMessage\":\"\\u12\"}}",
        "{\"partialSuccess\":{\"errorMessage\":\"a\nb\"}}",
        "{\"partialSuccess\":[]}",
        "{partialSuccess:{}}",
        "<html>{}</html>",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct partial_success result = read_response(cases[i], strlen(cases[i]));
        if (result.rejected_profiles || result.message[0])
            fail_msg("%s was taken for an answer", cases[i]);
    }
}

/* Cuts the response anywhere: the parser reads to its end and no further. */
static void a_truncated_response_yields_nothing(void **state) {
    (void)state;
    static const char whole[] = "{\"a\":[1,{\"b\":\"\\u00e9\\ud83d\\udd25\xf0\x9f\x94\xa5\"},tru\\]"
                                ",\"partialSuccess\":{\"rejectedProfiles\":\"12\"}}";
    char json[sizeof whole];
    memcpy(json, whole, sizeof whole);
    memcpy(strstr(json, "tru\\"), "true", 4);
    assert_response(json, 12, "");
    for (size_t size = 1; size < sizeof whole - 1; size++)
        assert_int_equal(read_response(json, size).rejected_profiles, 0);
}

/* Reads the protobuf message partial_success { rejected_profiles: 2, error_message: "too old" },
 * whole and cut anywhere. */
static void a_truncated_message_is_ignored(void **state) {
    (void)state;
    static const char whole[] = "\x0a\x0b\x08\x02\x12\x07too old";
    const struct partial_success result = read_as(false, whole, sizeof whole - 1);
    assert_int_equal(result.rejected_profiles, 2);
    assert_string_equal(result.message, "too old");
    for (size_t size = 1; size < sizeof whole - 1; size++) {
        const struct partial_success cut = read_as(false, whole, size);
        assert_int_equal(cut.rejected_profiles, 0);
        assert_string_equal(cut.message, "");
    }
    static const char *const garbage[] = {"\xff\xff\xff", "\x0a\xff\xff\xff\xff\x0f", "{}"};
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        const struct partial_success none = read_as(false, garbage[i], strlen(garbage[i]));
        assert_int_equal(none.rejected_profiles, 0);
        assert_string_equal(none.message, "");
    }
}

static void deep_responses_are_refused(void **state) {
    (void)state;
    char json[4000];
    for (size_t depth = 1; depth < 1900; depth *= 2) {
        const size_t head = (size_t)snprintf(json, sizeof json,
                                             "{\"partialSuccess\":{\"rejectedProfiles\":3},\"x\":");
        memset(json + head, '[', depth);
        memset(json + head + depth, ']', depth);
        memcpy(json + head + 2 * depth, "}", 2);
        assert_response(json, depth < 32 ? 3 : 0, "");
    }
}

static void a_long_message_is_cut_between_characters(void **state) {
    (void)state;
    char json[1200] = "{\"partialSuccess\":{\"errorMessage\":\"a";
    char *at = json + strlen(json);
    for (int i = 0; i < 300; i++, at += 3)
        memcpy(at, "\xe2\x82\xac", 3);
    memcpy(at, "bc\"}}", 6);
    const struct partial_success result = read_response(json, strlen(json));
    const size_t length = strlen(result.message);
    assert_int_equal(length % 3, 1);
    assert_in_range(length, sizeof result.message - 3, sizeof result.message - 1);
    assert_memory_equal(result.message + length - 3, "\xe2\x82\xac", 3);
}

static void the_content_type_decides(void **state) {
    (void)state;
    assert_true(response_is_json("application/json", false));
    assert_true(response_is_json("Application/JSON; charset=utf-8", false));
    assert_false(response_is_json("application/x-protobuf", true));
    assert_true(response_is_json(NULL, true));
    assert_false(response_is_json(NULL, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses),
        cmocka_unit_test(messages_are_kept_as_they_are),
        cmocka_unit_test(garbage_yields_nothing),
        cmocka_unit_test(a_truncated_response_yields_nothing),
        cmocka_unit_test(a_truncated_message_is_ignored),
        cmocka_unit_test(deep_responses_are_refused),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(the_content_type_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
