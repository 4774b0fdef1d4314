/* Tests reading the record of a thread's context, both intact and damaged. */
#include "unit.h"

#include "context/thread_context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEADER = 28, PAGE = 4096 };

static struct sample_context context;
static _Atomic bool has_read_enough;

struct bytes {
    size_t size;
    uint8_t at[THREAD_CONTEXT_ATTRIBUTE_BYTES + HEADER + 256];
};

static struct bytes record_of(const char *trace_id, const char *span_id, uint8_t valid) {
    struct bytes record = {.size = HEADER};
    memcpy(record.at, trace_id, strlen(trace_id));
    memcpy(record.at + 16, span_id, strlen(span_id));
    record.at[24] = valid;
    return record;
}

static struct bytes usual(void) {
    return record_of("a trace id of 16", "span id8", 1);
}

static void set_size(struct bytes *record) {
    const uint16_t size = (uint16_t)(record->size - HEADER);
    memcpy(record->at + 26, &size, sizeof size);
}

static void add(struct bytes *record, uint8_t key, const char *value, uint8_t length) {
    uint8_t *const entry = record->at + record->size;
    entry[0] = key;
    entry[1] = length;
    memcpy(entry + 2, value, length);
    record->size += 2u + length;
    set_size(record);
}

static enum context_outcome read_by(struct foreign_memory memory, const void *record) {
    const uintptr_t pointer = (uintptr_t)record;
    memset(&context, 0xa5, sizeof context);
    return thread_context_read((uintptr_t)&pointer, &memory, &context);
}

/* Reads the record as one of another thread, and as one of the calling thread. */
static enum context_outcome read_at(const void *record) {
    static uint8_t room[FOREIGN_COPY_BYTES];
    const enum context_outcome others =
        read_by((struct foreign_memory){.room = room, .of_another = true}, record);
    const struct sample_context copied = context;
    assert_int_equal(read_by((struct foreign_memory){.room = room}, record), others);
    if (others == CONTEXT_READ || others == CONTEXT_CUT)
        assert_memory_equal(&copied, &context, context_words(&context) * 8u);
    return others;
}

/* Puts the record at the end of the last mapped page: nothing behind it is read. */
static enum context_outcome read_record(const struct bytes *record) {
    char *const pages =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(munmap(pages + PAGE, PAGE), 0);
    char *const place = pages + PAGE - record->size;
    memcpy(place, record->at, record->size);
    const enum context_outcome outcome = read_at(place);
    munmap(pages, PAGE);
    return outcome;
}

static void assert_attribute(uint32_t *at, uint8_t key, const char *value) {
    struct context_attribute attribute;
    assert_true(context_next_attribute(&context, at, &attribute));
    assert_null(attribute.key);
    assert_int_equal(attribute.key_index, key);
    assert_int_equal(attribute.value_bytes, strlen(value));
    assert_memory_equal(attribute.value, value, strlen(value));
}

static void assert_no_more(uint32_t at) {
    assert_int_equal(at, context.attribute_bytes);
}

static void a_valid_record_is_read(void **state) {
    struct bytes record = usual();
    uint32_t at = 0;
    (void)state;
    add(&record, 0, "0123456789abcdef", 16);
    add(&record, 7, "", 0);
    assert_int_equal(read_record(&record), CONTEXT_READ);
    assert_memory_equal(context.trace_id, "a trace id of 16", 16);
    assert_memory_equal(context.span_id, "span id8", 8);
    assert_int_equal(context.reserved, 0);
    assert_attribute(&at, 0, "0123456789abcdef");
    assert_attribute(&at, 7, "");
    assert_no_more(at);
}

/* The kernel copies 257 bytes at once: the third value begins in the first copy and ends beyond. */
static void attributes_beyond_one_copy_are_whole(void **state) {
    enum { LONG = 100, VALUES = 4 };
    struct bytes record = usual();
    char values[VALUES][LONG + 1];
    uint32_t at = 0;
    (void)state;
    for (uint8_t i = 0; i < VALUES; i++) {
        memset(values[i], 'a' + i, LONG);
        values[i][LONG] = 0;
        add(&record, i, values[i], LONG);
    }
    assert_int_equal(read_record(&record), CONTEXT_READ);
    for (uint8_t i = 0; i < VALUES; i++)
        assert_attribute(&at, i, values[i]);
    assert_no_more(at);
}

/* Equal records need equal bytes for comparisons with other contexts, whatever was there before. */
static void bytes_behind_the_attributes_are_zero(void **state) {
    static const uint8_t zeros[8];
    struct bytes record = usual();
    (void)state;
    add(&record, 1, "a", 1);
    assert_int_equal(read_record(&record), CONTEXT_READ);
    assert_int_equal(context.attribute_bytes, 4);
    assert_memory_equal(context.attributes + 4, zeros,
                        context_words(&context) * 8 - 32 - context.attribute_bytes);
}

static void no_pointer_is_no_context(void **state) {
    (void)state;
    assert_int_equal(read_at(NULL), CONTEXT_NONE);
}

static void only_one_is_valid(void **state) {
    (void)state;
    for (unsigned valid = 0; valid < 256; valid++) {
        const struct bytes record = record_of("a trace id of 16", "span id8", (uint8_t)valid);
        assert_int_equal(read_record(&record), valid == 1   ? CONTEXT_READ
                                               : valid == 0 ? CONTEXT_NONE
                                                            : CONTEXT_WRONG);
    }
}

static void a_record_need_not_be_aligned(void **state) {
    static uint8_t room[HEADER + 8];
    const struct bytes record = usual();
    (void)state;
    for (int i = 0; i < 8; i++) {
        memcpy(room + i, record.at, record.size);
        assert_int_equal(read_at(room + i), CONTEXT_READ);
        assert_memory_equal(context.span_id, "span id8", 8);
    }
}

static void zero_ids_are_no_span(void **state) {
    struct bytes record = record_of("", "", 1);
    (void)state;
    assert_int_equal(read_record(&record), CONTEXT_NONE);
    add(&record, 3, "its value", 9);
    assert_int_equal(read_record(&record), CONTEXT_READ);
    assert_false(context_has_span(&context));
    record = record_of("a trace id of 16", "", 1);
    assert_int_equal(read_record(&record), CONTEXT_NONE);
}

static void the_last_of_a_key_wins(void **state) {
    struct bytes record = usual();
    uint32_t at = 0;
    (void)state;
    add(&record, 1, "first", 5);
    add(&record, 2, "other", 5);
    add(&record, 1, "second", 6);
    add(&record, 1, "last", 4);
    assert_int_equal(read_record(&record), CONTEXT_READ);
    assert_attribute(&at, 2, "other");
    assert_attribute(&at, 1, "last");
    assert_no_more(at);
}

/* Leaves out a value without room, too: an older value would be wrong. */
static void a_key_whose_last_value_does_not_fit_has_none(void **state) {
    char large[255];
    struct bytes record = usual();
    struct context_attribute attribute;
    (void)state;
    memset(large, 'x', sizeof large);
    add(&record, 1, "old", 3);
    add(&record, 2, large, 255);
    add(&record, 1, large, 255);
    assert_int_equal(read_record(&record), CONTEXT_CUT);
    uint32_t at = 0;
    while (context_next_attribute(&context, &at, &attribute))
        assert_int_equal(attribute.key_index, 2);
}

static void an_entry_behind_the_end_ends_the_list(void **state) {
    struct bytes record = usual();
    uint32_t at = 0;
    (void)state;
    add(&record, 1, "whole", 5);
    add(&record, 2, "too long", 8);
    record.size -= 1;
    set_size(&record);
    assert_int_equal(read_record(&record), CONTEXT_READ);
    assert_attribute(&at, 1, "whole");
    assert_no_more(at);
    record.size -= 8; /* a key's number without a value */
    set_size(&record);
    at = 0;
    assert_int_equal(read_record(&record), CONTEXT_READ);
    assert_attribute(&at, 1, "whole");
    assert_no_more(at);
}

static void more_than_16_attributes_are_cut(void **state) {
    struct bytes record = usual();
    struct context_attribute attribute;
    uint32_t at = 0;
    uint32_t count = 0;
    (void)state;
    for (uint8_t key = 0; key < CONTEXT_ATTRIBUTES; key++)
        add(&record, key, "value", 5);
    assert_int_equal(read_record(&record), CONTEXT_READ);
    add(&record, 200, "value", 5);
    assert_int_equal(read_record(&record), CONTEXT_CUT);
    while (context_next_attribute(&context, &at, &attribute))
        count++;
    assert_int_equal(count, CONTEXT_ATTRIBUTES);
}

static void more_than_480_bytes_are_cut(void **state) {
    char value[237] = "";
    struct bytes record = usual();
    (void)state;
    add(&record, 1, value, sizeof value);
    add(&record, 2, value, sizeof value);
    assert_int_equal(read_record(&record), CONTEXT_READ);
    assert_int_equal(context.attribute_bytes, CONTEXT_ATTRIBUTE_BYTES);
    add(&record, 3, "", 0);
    assert_int_equal(read_record(&record), CONTEXT_CUT);
    assert_int_equal(context.attribute_bytes, CONTEXT_ATTRIBUTE_BYTES);
    assert_memory_equal(context.span_id, "span id8", 8);
}

/* Reads no further than the bound, even for a size of 65,535. */
static void a_record_is_read_as_far_as_its_bound(void **state) {
    struct bytes record = usual();
    (void)state;
    add(&record, 1, "value", 5);
    record.size = HEADER + THREAD_CONTEXT_ATTRIBUTE_BYTES;
    memset(record.at + 26, 0xff, 2);
    assert_int_equal(read_record(&record), CONTEXT_CUT);
    assert_memory_equal(context.span_id, "span id8", 8);
}

static void attributes_that_are_not_there_are_wrong(void **state) {
    struct bytes record = usual();
    (void)state;
    memset(record.at + 26, 1, 2); /* 257 bytes, ending behind the page */
    assert_int_equal(read_record(&record), CONTEXT_WRONG);
}

static void garbage_is_survived(void **state) {
    static const uintptr_t pointers[] = {1,
                                         8,
                                         4095,
                                         0x7fffffffffff,
                                         0x7ffffffff000,
                                         0x800000000000,
                                         0xdeadbeefdeadbeef,
                                         0xffffffffff600000,
                                         0xffff888000000000,
                                         UINTPTR_MAX - HEADER,
                                         UINTPTR_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
        assert_int_equal(read_at((const void *)pointers[i]), CONTEXT_WRONG);
}

static void memory_that_is_gone_is_survived(void **state) {
    const struct bytes record = usual();
    char *const page =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_ptr_not_equal(page, MAP_FAILED);
    char *const over = page + PAGE - 5; /* the record begins in one page and ends in the next */
    memcpy(over, record.at, record.size);
    assert_int_equal(read_at(over), CONTEXT_READ);
    assert_int_equal(mprotect(page + PAGE, PAGE, PROT_NONE), 0);
    assert_int_equal(read_at(over), CONTEXT_WRONG);
    munmap(page, 2 * PAGE);
    assert_int_equal(read_at(over), CONTEXT_WRONG);
}

/* Makes no system call for memory in the variable's own block: here the kernel would refuse it. */
static void known_memory_needs_no_system_call(void **state) {
    const struct bytes record = usual();
    const uintptr_t pointer = (uintptr_t)record.at;
    static uint8_t room[FOREIGN_COPY_BYTES];
    struct foreign_memory memory = {.known = {pointer, pointer + record.size}, .room = room};
    (void)state;
    assert_int_equal(thread_context_read((uintptr_t)&pointer, &memory, &context), CONTEXT_READ);
    assert_int_equal(memory.filter, FILTER_UNKNOWN);
    memory.known.high--;
    assert_int_equal(thread_context_read((uintptr_t)&pointer, &memory, &context), CONTEXT_READ);
    assert_int_not_equal(memory.filter, FILTER_UNKNOWN);
}

/* Another process may cut a file that both have mapped: reading behind its end is SIGBUS. */
static void *cuts_and_extends(void *arg) {
    const int file = *(const int *)arg;
    const struct bytes record = usual();
    while (!atomic_load(&has_read_enough)) {
        (void)!ftruncate(file, 0);
        (void)!pwrite(file, record.at, record.size, 0);
        (void)!ftruncate(file, PAGE);
    }
    return NULL;
}

static void a_record_of_a_file_that_is_cut_short_is_no_fault(void **state) {
    enum { MOST_READS = 1000000, EACH = 500 };
    int file = memfd_create("records", 0);
    pthread_t thread;
    int found = 0;
    int gone = 0;
    (void)state;
    assert_int_equal(ftruncate(file, PAGE), 0);
    char *const page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    pthread_create(&thread, NULL, cuts_and_extends, &file);
    for (int i = 0; i < MOST_READS && (found < EACH || gone < EACH); i++) {
        static uint8_t room[FOREIGN_COPY_BYTES];
        const enum context_outcome outcome = read_by((struct foreign_memory){.room = room}, page);
        found += outcome == CONTEXT_READ;
        gone += outcome == CONTEXT_WRONG;
    }
    atomic_store(&has_read_enough, true);
    pthread_join(thread, NULL);
    munmap(page, PAGE);
    close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_valid_record_is_read),
        cmocka_unit_test(bytes_behind_the_attributes_are_zero),
        cmocka_unit_test(attributes_beyond_one_copy_are_whole),
        cmocka_unit_test(a_record_of_a_file_that_is_cut_short_is_no_fault),
        cmocka_unit_test(no_pointer_is_no_context),
        cmocka_unit_test(only_one_is_valid),
        cmocka_unit_test(a_record_need_not_be_aligned),
        cmocka_unit_test(zero_ids_are_no_span),
        cmocka_unit_test(the_last_of_a_key_wins),
        cmocka_unit_test(a_key_whose_last_value_does_not_fit_has_none),
        cmocka_unit_test(an_entry_behind_the_end_ends_the_list),
        cmocka_unit_test(more_than_16_attributes_are_cut),
        cmocka_unit_test(more_than_480_bytes_are_cut),
        cmocka_unit_test(a_record_is_read_as_far_as_its_bound),
        cmocka_unit_test(attributes_that_are_not_there_are_wrong),
        cmocka_unit_test(garbage_is_survived),
        cmocka_unit_test(memory_that_is_gone_is_survived),
        cmocka_unit_test(known_memory_needs_no_system_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
