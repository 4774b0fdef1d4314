/* Tests reading labels of the custom-labels libraries, both intact and damaged ones. */
#include "unit.h"

#include "context/custom_labels.h"

#include <sys/mman.h>

struct text {
    uint64_t size;
    const char *bytes;
};

struct label {
    struct text key;
    struct text value;
};

struct label_set {
    const struct label *labels;
    uint64_t count;
    uint64_t capacity;
};

static struct sample_context context;

static struct label label_of(const char *key, const char *value) {
    return (struct label){{key ? strlen(key) : 0, key}, {strlen(value), value}};
}

static enum context_outcome read_set(const struct label_set *set) {
    static uint8_t room[FOREIGN_COPY_BYTES];
    struct foreign_memory memory = {.room = room};
    memset(&context, 0xa5, sizeof context);
    return custom_labels_read((uintptr_t)&set, &memory, &context);
}

static enum context_outcome read_labels(const struct label *labels, uint64_t count) {
    return read_set(&(struct label_set){labels, count, count});
}

static void assert_label(uint32_t *at, const char *key, const char *value) {
    struct context_attribute attribute;
    assert_true(context_next_attribute(&context, at, &attribute));
    assert_non_null(attribute.key);
    assert_int_equal(attribute.key_bytes, strlen(key));
    assert_memory_equal(attribute.key, key, strlen(key));
    assert_int_equal(attribute.value_bytes, strlen(value));
    assert_memory_equal(attribute.value, value, strlen(value));
}

static void labels_are_read_by_their_names(void **state) {
    const struct label labels[] = {label_of("route", "/cart"), label_of("tenant", "")};
    uint32_t at = 0;
    (void)state;
    assert_int_equal(read_labels(labels, 2), CONTEXT_READ);
    assert_false(context_has_span(&context));
    assert_label(&at, "route", "/cart");
    assert_label(&at, "tenant", "");
    assert_int_equal(at, context.attribute_bytes);
    const struct label nowhere = {{3, "key"}, {0, NULL}};
    at = 0;
    assert_int_equal(read_labels(&nowhere, 1), CONTEXT_READ);
    assert_label(&at, "key", "");
}

static void no_labels_are_no_context(void **state) {
    const struct label taken[] = {label_of(NULL, "value")};
    (void)state;
    assert_int_equal(read_set(NULL), CONTEXT_NONE);
    assert_int_equal(read_labels(NULL, 0), CONTEXT_NONE);
    assert_int_equal(read_labels(taken, 1), CONTEXT_NONE);
}

static void the_first_of_a_key_wins(void **state) {
    const struct label labels[] = {label_of(NULL, "gone"), label_of("key", "first"),
                                   label_of("other", "1"), label_of("key", "second")};
    uint32_t at = 0;
    (void)state;
    assert_int_equal(read_labels(labels, 4), CONTEXT_READ);
    assert_label(&at, "key", "first");
    assert_label(&at, "other", "1");
    assert_int_equal(at, context.attribute_bytes);
}

static void long_labels_are_cut(void **state) {
    char text[257] = "";
    struct label labels[CUSTOM_LABELS + 1];
    char names[CUSTOM_LABELS + 1][8];
    uint32_t at = 0;
    (void)state;
    memset(text, 'x', 256);
    labels[0] = label_of("long", text);
    labels[1] = label_of(text, "long");
    labels[2] = label_of("short", "value");
    assert_int_equal(read_labels(labels, 3), CONTEXT_CUT);
    assert_label(&at, "short", "value");
    assert_int_equal(at, context.attribute_bytes);
    for (int i = 0; i <= CUSTOM_LABELS; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        labels[i] = label_of(names[i], "");
    }
    assert_int_equal(read_labels(labels, CONTEXT_ATTRIBUTES), CONTEXT_READ);
    assert_int_equal(read_labels(labels, CONTEXT_ATTRIBUTES + 1), CONTEXT_CUT);
    assert_int_equal(read_labels(labels, CUSTOM_LABELS + 1), CONTEXT_CUT);
}

static void garbage_is_survived(void **state) {
    const struct label good = label_of("key", "value");
    struct label bad[] = {good, good};
    void *const gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_ptr_not_equal(gone, MAP_FAILED);
    assert_int_equal(read_set(gone), CONTEXT_WRONG);
    assert_int_equal(read_set((void *)-8), CONTEXT_WRONG);
    assert_int_equal(read_set(&(struct label_set){gone, 1, 1}), CONTEXT_WRONG);
    assert_int_equal(read_set(&(struct label_set){&good, 2, 1}), CONTEXT_WRONG);
    assert_int_equal(read_set(&(struct label_set){(void *)-32, 64, 64}), CONTEXT_WRONG);
    bad[1].key.bytes = gone;
    assert_int_equal(read_labels(bad, 2), CONTEXT_WRONG);
    bad[1] = label_of("other", "value");
    bad[1].value.bytes = gone;
    assert_int_equal(read_labels(bad, 2), CONTEXT_WRONG);
    munmap(gone, 4096);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_read_by_their_names),
        cmocka_unit_test(no_labels_are_no_context),
        cmocka_unit_test(the_first_of_a_key_wins),
        cmocka_unit_test(long_labels_are_cut),
        cmocka_unit_test(garbage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
