/* Tests reading the attributes that an application publishes about itself: plain values are taken,
 * within bounds, and nothing else. */
#include "unit.h"

#include "context_message.h"

static void every_plain_value_is_taken(void **state) {
    (void)state;
    static const char *const keys[] = {"t", "i", "d", "b", "list", "bytes", "none"};
    AnyValue inner = text_value("inner");
    AnyValue *one[] = {&inner};
    Opentelemetry__Proto__Common__V1__ArrayValue list =
        OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
    AnyValue values[7];
    struct attribute_set set = {.count = 0};
    list.values = one;
    list.n_values = 1;
    for (size_t i = 0; i < 7; i++)
        values[i] = (AnyValue)OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
    values[0] = text_value("\xe2\x82\xac");
    values[1].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
    values[1].int_value = -7;
    values[2].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_DOUBLE_VALUE;
    values[2].double_value = 0.5;
    values[3].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE;
    values[3].bool_value = true;
    values[4].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE;
    values[4].array_value = &list;
    values[5].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BYTES_VALUE;
    values[5].bytes_value = (ProtobufCBinaryData){2, (uint8_t[]){1, 2}};
    const struct message *const message = message_of(keys, values, 7);
    assert_true(context_payload_read(message->bytes, message->size, &set));
    assert_int_equal(set.count, 4);
    assert_string_equal(text_in(&set, "t"), "\xe2\x82\xac");
    assert_int_equal(attributes_find(&set, "i")->value.integer, -7);
    assert_true(attributes_find(&set, "d")->value.real == 0.5);
    assert_int_equal(attributes_find(&set, "d")->value.kind, ATTRIBUTE_DOUBLE);
    assert_true(attributes_find(&set, "b")->value.truth);
    attributes_clear(&set);
}

static void keys_and_texts_are_bounded(void **state) {
    (void)state;
    static const struct {
        size_t key;
        size_t text;
        bool taken;
    } cases[] = {{1, 1, true},  {CONTEXT_KEY_BYTES, CONTEXT_TEXT_BYTES, true},
                 {0, 1, false}, {CONTEXT_KEY_BYTES + 1, 1, false},
                 {1, 0, false}, {1, CONTEXT_TEXT_BYTES + 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct attribute_set set = {.count = 0};
        char *const key = long_text(cases[i].key);
        char *const text = long_text(cases[i].text);
        const struct message *const message = message_with(key, text);
        assert_true(context_payload_read(message->bytes, message->size, &set));
        assert_int_equal(set.count, cases[i].taken);
        attributes_clear(&set);
        free(key);
        free(text);
    }
}

static void pairs_that_are_no_text_are_skipped(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"a\n", "v"}, {"\x7f", "v"}, {"\xff", "v"}, {"k", "\xed\xa0\x80"}, {"k", "a\xff"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct attribute_set set = {.count = 0};
        const struct message *const message = message_with(pairs[i][0], pairs[i][1]);
        assert_true(context_payload_read(message->bytes, message->size, &set));
        assert_int_equal(set.count, 0);
    }
}

static void the_last_of_two_counts(void **state) {
    (void)state;
    static const char *const keys[] = {"a", "b", "a"};
    AnyValue values[] = {text_value("1"), text_value("2"), text_value("3")};
    struct attribute_set set = {.count = 0};
    const struct message *const message = message_of(keys, values, 3);
    assert_true(context_payload_read(message->bytes, message->size, &set));
    assert_int_equal(set.count, 2);
    assert_string_equal(text_in(&set, "a"), "3");
    attributes_clear(&set);
}

static void a_set_has_an_end(void **state) {
    (void)state;
    struct attribute_set set = {.count = 0};
    char key[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        attributes_set_text(&set, key, "v");
    }
    assert_int_equal(set.count, MAX_ATTRIBUTES);
    attributes_set_int(&set, "k0", 4); /* an existing attribute can still change */
    assert_int_equal(attributes_find(&set, "k0")->value.integer, 4);
    attributes_clear(&set);
}

/* Nests lists in lists, as deep as they fit: a decoder that follows them needs a stack as deep. */
static void depth_is_no_way_to_the_end_of_the_stack(void **state) {
    (void)state;
    static uint8_t nested[CONTEXT_PAYLOAD_BYTES - 64];
    static struct message message;
    size_t at = sizeof nested;
    while (at > 16) { /* each level is a field 5 (array_value) and a field 1 (values) around it */
        const size_t size = sizeof nested - at;
        const uint8_t field = size && nested[at] == 0x0a ? 0x2a : 0x0a;
        nested[--at] = (uint8_t)(size >> 14);
        nested[--at] = (uint8_t)(size >> 7 | 0x80);
        nested[--at] = (uint8_t)(size | 0x80);
        nested[--at] = field;
    }
    while (nested[at] != 0x2a) /* an AnyValue with a list in it */
        at += 4;
    const size_t value = sizeof nested - at;
    const uint8_t head[] = {0x0a,
                            (uint8_t)((value + 7) | 0x80),
                            (uint8_t)((value + 7) >> 7 | 0x80),
                            (uint8_t)((value + 7) >> 14),
                            0x0a,
                            1,
                            'k',
                            0x12,
                            (uint8_t)(value | 0x80),
                            (uint8_t)(value >> 7 | 0x80),
                            (uint8_t)(value >> 14)};
    static uint8_t resource[CONTEXT_PAYLOAD_BYTES + 32];
    memcpy(resource, head, sizeof head);
    memcpy(resource + sizeof head, nested + at, value);
    finish(&message, resource, sizeof head + value);
    struct attribute_set set = {.count = 0};
    assert_true(context_payload_read(message.bytes, message.size, &set));
    assert_int_equal(set.count, 0);
}

/* --- the names of keys --- */

static void names_keep_their_places(void **state) {
    (void)state;
    static const char *const map[] = {"first", NULL, "", "a\nb", "\xff", "sixth", "first"};
    struct attribute_set set = {.count = 0};
    struct key_names names = {{NULL}};
    const struct message *const message = message_of_names("tls_v1", map, 7);
    context_payload_names(message->bytes, message->size, &names);
    for (size_t i = 0; i < KEY_NAMES; i++)
        if (i == 0 || i == 5 || i == 6)
            assert_string_equal(names.of[i], map[i]);
        else
            assert_null(names.of[i]);
    assert_true(context_payload_read(message->bytes, message->size, &set));
    assert_int_equal(set.count, 0); /* as attributes of the resource they do not count */
    key_names_clear(&names);
}

static void only_256_have_an_index(void **state) {
    (void)state;
    const char *map[300];
    struct key_names names = {{NULL}};
    for (size_t i = 0; i < 300; i++)
        map[i] = "name";
    const struct message *const message = message_of_names("tlsdesc_v1_dev", map, 300);
    context_payload_names(message->bytes, message->size, &names);
    assert_string_equal(names.of[0], "name");
    assert_string_equal(names.of[KEY_NAMES - 1], "name");
    key_names_clear(&names);
}

/* Another schema may mean something else by the same list. */
static void names_count_only_with_a_schema_that_is_known(void **state) {
    (void)state;
    static const char *const schemas[] = {NULL, "", "tls_v2", "go_pprof_labels_v1", "tls_v1 "};
    static const char *const map[] = {"name"};
    struct key_names names = {{NULL}};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        names.of[0] = strdup("of before");
        const struct message *const message = message_of_names(schemas[i], map, 1);
        context_payload_names(message->bytes, message->size, &names);
        assert_null(names.of[0]);
    }
}

static void a_list_of_names_that_is_none_has_none(void **state) {
    (void)state;
    static const char *const map[] = {"name"};
    struct key_names names = {{NULL}};
    AnyValue text = text_value("name");
    struct message *const message = message_of_names("tls_v1", map, 1);
    append(message, "threadlocal.attribute_key_map", &text); /* the last counts */
    context_payload_names(message->bytes, message->size, &names);
    assert_null(names.of[0]);
    context_payload_names(message->bytes, message->size - 1, &names);
    assert_null(names.of[0]);
    context_payload_names((const uint8_t *)"\xff\xff", 2, &names);
    assert_null(names.of[0]);
}

static void garbage_adds_nothing(void **state) {
    (void)state;
    static const uint8_t zeroes[CONTEXT_PAYLOAD_BYTES + 1];
    struct attribute_set set = {.count = 0};
    struct message *const message = message_with("k", "v");
    assert_false(context_payload_read(message->bytes, message->size - 1, &set));
    assert_false(context_payload_read((const uint8_t *)"\xff\xff\xff", 3, &set));
    assert_false(context_payload_read(zeroes, 10, &set));
    assert_false(context_payload_read(zeroes, sizeof zeroes, &set));
    assert_int_equal(set.count, 0);
    assert_true(context_payload_read(zeroes, 0, &set));
    assert_int_equal(set.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plain_value_is_taken),
        cmocka_unit_test(keys_and_texts_are_bounded),
        cmocka_unit_test(pairs_that_are_no_text_are_skipped),
        cmocka_unit_test(the_last_of_two_counts),
        cmocka_unit_test(a_set_has_an_end),
        cmocka_unit_test(depth_is_no_way_to_the_end_of_the_stack),
        cmocka_unit_test(names_keep_their_places),
        cmocka_unit_test(only_256_have_an_index),
        cmocka_unit_test(names_count_only_with_a_schema_that_is_known),
        cmocka_unit_test(a_list_of_names_that_is_none_has_none),
        cmocka_unit_test(garbage_adds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
