/* Compares our wire format with the generated encoder's, and tests the index that keeps the
 * dictionary's items distinct. */
#include "unit.h"

#include "intern.h"
#include "profiles.pb-c.h"
#include "wire.h"

#define PROFILES(name) Opentelemetry__Proto__Profiles__V1development__##name

static void assert_packs_alike(const ProtobufCMessage *message, struct wire *wire) {
    uint8_t *const expected = malloc(protobuf_c_message_get_packed_size(message) + 1);
    assert_non_null(expected);
    const size_t size = protobuf_c_message_pack(message, expected);
    assert_false(wire->failed);
    assert_int_equal(wire->size, size);
    assert_memory_equal(wire->bytes, expected, size);
    free(expected);
    wire_free(wire);
}

static void numbers(void **state) {
    (void)state;
    static const uint64_t values[] = {0,     1,         127,        128,        16383,
                                      16384, INT32_MAX, UINT32_MAX, 1ull << 62, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        PROFILES(Profile) message;
        opentelemetry__proto__profiles__v1development__profile__init(&message);
        struct wire wire = {NULL};
        message.time_unix_nano = values[i];
        message.duration_nano = values[i];
        message.period = (int64_t)values[i];
        if (values[i])
            wire_fixed64_present(&wire, 3, values[i]);
        wire_number(&wire, 4, values[i]);
        wire_number(&wire, 6, values[i]);
        assert_packs_alike(&message.base, &wire);
    }
}

static void lists(void **state) {
    (void)state;
    static int32_t list[20000];
    static const size_t counts[] = {0, 1, 60, 127, 128, 129, 5000, 20000};
    for (int32_t i = 0; i < 20000; i++)
        list[i] = i * 107;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        PROFILES(Stack) message = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__STACK__INIT;
        struct wire wire = {NULL};
        message.location_indices = list;
        message.n_location_indices = counts[i];
        wire_packed(&wire, 1, list, counts[i], NULL);
        assert_packs_alike(&message.base, &wire);
    }
}

static void translated_lists(void **state) {
    (void)state;
    static const int32_t places[] = {2, 0, 1, 2};
    static const int32_t table[] = {7, 300, 1 << 20};
    int32_t list[] = {1 << 20, 7, 300, 1 << 20};
    PROFILES(Stack) message = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__STACK__INIT;
    struct wire wire = {NULL};
    message.location_indices = list;
    message.n_location_indices = 4;
    wire_packed(&wire, 1, places, 4, table);
    assert_packs_alike(&message.base, &wire);
}

/* Nests contents whose lengths take one to four bytes, three deep. */
static void nested(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 110, 127, 128, 16383, 16384, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *const text = calloc(1, sizes[i] + 1);
        assert_non_null(text);
        memset(text, 'x', sizes[i]);
        char *strings[] = {text, text};
        PROFILES(ProfilesDictionary)
        dictionary = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__PROFILES_DICTIONARY__INIT;
        PROFILES(ProfilesData)
        data = OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__PROFILES_DATA__INIT;
        dictionary.string_table = strings;
        dictionary.n_string_table = 2;
        data.dictionary = &dictionary;
        struct wire wire = {NULL};
        const size_t begun = wire_begin(&wire, 2);
        wire_bytes(&wire, 5, text, sizes[i]);
        const size_t inner = wire_begin(&wire, 5);
        for (size_t k = 0; k < sizes[i]; k++)
            wire_varint(&wire, 'x');
        wire_end(&wire, inner);
        wire_end(&wire, begun);
        assert_packs_alike(&data.base, &wire);
        free(text);
    }
}

/* Allocates nothing for contents that cannot be held; and the failure is for good. */
static void without_memory(void **state) {
    (void)state;
    struct wire wire = {NULL};
    wire_number(&wire, 1, 1);
    assert_false(wire_reserve(&wire, SIZE_MAX / 2));
    assert_true(wire.failed);
    const size_t size = wire.size;
    wire_number(&wire, 1, 1);
    wire_bytes(&wire, 1, "text", 4);
    wire_end(&wire, wire_begin(&wire, 1));
    assert_int_equal(wire.size, size);
    wire_free(&wire);
}

/* --- the index --- */

enum { KEYS = 20000 };

/* Writes the key of this number, and returns its size. The first 40 keys are beginnings of one
 * another, among them the empty one; the others all differ. */
static size_t key_of(int number, char key[static 64]) {
    memset(key, 0, 64);
    if (number < 40)
        return (size_t)number;
    memcpy(key, &number, sizeof number);
    return sizeof number + (size_t)(number % 50);
}

static void assert_numbers(struct arena *arena, struct intern *index, bool expect_new) {
    for (int i = 0; i < KEYS; i++) {
        char key[64];
        bool is_new;
        const size_t size = key_of(i, key);
        assert_int_equal(intern(arena, index, key, size, &is_new), i);
        assert_int_equal(is_new, expect_new);
        assert_int_equal(index->keys[i].size, size);
        assert_memory_equal(index->keys[i].bytes, key, size);
        assert_int_equal((uintptr_t)index->keys[i].bytes % 16, 0);
    }
    assert_int_equal(index->count, KEYS);
}

static void keys_have_one_number(void **state) {
    (void)state;
    struct arena arena = {NULL};
    struct intern index = {NULL};
    assert_numbers(&arena, &index, true);
    assert_numbers(&arena, &index, false);
    arena_free(&arena);
}

static void room_is_made_at_once(void **state) {
    (void)state;
    struct arena arena = {NULL};
    struct intern index = {NULL};
    bool is_new;
    assert_int_equal(intern(&arena, &index, "", 0, &is_new), 0);
    intern_reserve(&arena, &index, KEYS);
    assert_int_equal(intern(&arena, &index, "", 0, &is_new), 0);
    assert_false(is_new);
    const struct intern_key *const keys = index.keys;
    for (int i = 1; i < KEYS; i++) {
        char key[64];
        const size_t size = key_of(i, key);
        assert_int_equal(intern(&arena, &index, key, size, &is_new), i);
    }
    assert_ptr_equal(index.keys, keys);
    assert_numbers(&arena, &index, false);
    intern_reserve(&arena, &index, 10);
    assert_ptr_equal(index.keys, keys);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(lists),
        cmocka_unit_test(translated_lists),
        cmocka_unit_test(nested),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(keys_have_one_number),
        cmocka_unit_test(room_is_made_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
