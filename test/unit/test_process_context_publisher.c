/* Tests that the profiler's reader finds the context that the profiler publishes about a process,
 * and finds none once it is withdrawn. */
#include "unit.h"

#include "encode/process_context.h"
#include "process/process_context_publisher.h"
#include "resource.pb-c.h"

#include <sys/wait.h>
#include <unistd.h>

static struct log quiet = {.level = LOG_NONE};
static struct process_context_publication publication;
static uint8_t payload[CONTEXT_PUBLICATION_BYTES];

static size_t payload_of(const char *key, const char *text) {
    const struct published_attribute entries[] = {{.key = "service.name", .text = "shop"},
                                                  {.key = key, .text = text}};
    return process_context_payload(payload, sizeof payload,
                                   (struct published_attributes){entries, 2},
                                   (struct published_attributes){NULL, 0});
}

static const char *text_of(const struct attribute_set *set, const char *key) {
    const struct attribute *const found = attributes_find(set, key);
    return found ? found->value.text : NULL;
}

static void the_published_context_is_read(void **state) {
    (void)state;
    struct process_context context = {.log = &quiet};
    struct attribute_set set = {.count = 0};
    assert_false(process_context_is_published());
    assert_true(process_context_publish(&publication, payload, payload_of("k", "first")));
    assert_true(process_context_is_published());
    assert_true(process_context_update(&context, &set));
    assert_string_equal(text_of(&set, "service.name"), "shop");
    assert_string_equal(text_of(&set, "k"), "first");

    assert_false(process_context_update(&context, &set));
    for (int i = 0; i < 5; i++)
        assert_true(process_context_publish(&publication, payload, payload_of("k", "second")));
    assert_true(process_context_update(&context, &set));
    assert_string_equal(text_of(&set, "k"), "second");

    process_context_unpublish(&publication);
    assert_false(process_context_is_published());
    assert_true(process_context_update(&context, &set));
    assert_int_equal(set.count, 0);
    process_context_unpublish(&publication);
}

static void an_attribute_may_be_a_list(void **state) {
    (void)state;
    static const char *const names[] = {"http.route", "", "tenant", NULL};
    const struct published_attribute list = {.key = "threadlocal.attribute_key_map", .list = names};
    const size_t size =
        process_context_payload(payload, sizeof payload, (struct published_attributes){NULL, 0},
                                (struct published_attributes){&list, 1});
    /* ProcessContext {1: {}, 2: KeyValue}: the second is what OpenTelemetry's own code reads */
    assert_int_equal(payload[0] << 8 | payload[1], 0x0a00);
    assert_int_equal(payload[2], 0x12);
    assert_int_equal(payload[3], size - 4);
    Opentelemetry__Proto__Common__V1__KeyValue *const read =
        opentelemetry__proto__common__v1__key_value__unpack(NULL, size - 4, payload + 4);
    assert_non_null(read);
    assert_string_equal(read->key, "threadlocal.attribute_key_map");
    assert_int_equal(read->value->array_value->n_values, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(read->value->array_value->values[i]->string_value, names[i]);
    opentelemetry__proto__common__v1__key_value__free_unpacked(read, NULL);
}

static void a_value_too_long_is_refused(void **state) {
    (void)state;
    static char text[CONTEXT_PUBLICATION_BYTES + 1];
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(payload_of("k", text), 0);
    text[300] = 0; /* the text's size takes two bytes */
    assert_true(payload_of("k", text) > 300);
    assert_false(process_context_publish(&publication, payload, sizeof payload + 1));
    assert_false(process_context_is_published());
}

static void a_child_has_its_own(void **state) {
    (void)state;
    assert_true(process_context_publish(&publication, payload, payload_of("k", "v")));
    const pid_t child = fork();
    if (child == 0) {
        const bool clean = !process_context_is_published();
        const bool published =
            process_context_publish(&publication, payload, payload_of("k", "child's"));
        _exit(clean && published && process_context_is_published() ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(process_context_is_published());
    process_context_unpublish(&publication);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_context_is_read),
        cmocka_unit_test(an_attribute_may_be_a_list),
        cmocka_unit_test(a_value_too_long_is_refused),
        cmocka_unit_test(a_child_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
