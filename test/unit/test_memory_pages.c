/* Tests memory that the helper reads by whole pages. */
#include "unit.h"

#include "symbolize/memory_pages.h"

#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 200 };

static uint8_t *map_pages(void) {
    uint8_t *const bytes =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    for (size_t i = 0; i < PAGES * PAGE; i += sizeof(uint64_t))
        memcpy(bytes + i, &i, sizeof(uint64_t));
    return bytes;
}

static uint64_t word_at(struct memory_pages *pages, const uint8_t *at) {
    uint64_t word = UINT64_MAX;
    assert_true(memory_pages_read(pages, (uintptr_t)at, &word, sizeof word));
    return word;
}

static void a_page_is_read_once(void **state) {
    (void)state;
    uint8_t *const bytes = map_pages();
    struct memory_pages *const pages = memory_pages_open();
    assert_int_equal(word_at(pages, bytes + 8), 8);
    assert_int_equal(munmap(bytes, PAGE), 0);
    assert_int_equal(word_at(pages, bytes + 4088), 4088);
    assert_int_equal(word_at(pages, bytes + PAGE), PAGE);
    memory_pages_close(pages);
    munmap(bytes, PAGES * PAGE);
}

static void a_word_may_lie_in_two_pages(void **state) {
    (void)state;
    uint8_t *const bytes = map_pages();
    struct memory_pages *const pages = memory_pages_open();
    uint64_t expected;
    memcpy(&expected, bytes + PAGE - 4, sizeof expected);
    assert_int_equal(word_at(pages, bytes + PAGE - 4), expected);
    memory_pages_close(pages);
    munmap(bytes, PAGES * PAGE);
}

static void more_pages_than_are_kept_are_right(void **state) {
    (void)state;
    uint8_t *const bytes = map_pages();
    struct memory_pages *const pages = memory_pages_open();
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < PAGES; i++)
            assert_int_equal(word_at(pages, bytes + i * PAGE + 16 * i), i * PAGE + 16 * i);
    memory_pages_close(pages);
    munmap(bytes, PAGES * PAGE);
}

static void what_is_not_readable_is_refused(void **state) {
    (void)state;
    uint8_t *const bytes = map_pages();
    struct memory_pages *const pages = memory_pages_open();
    uint64_t word;
    assert_int_equal(mprotect(bytes + PAGE, PAGE, PROT_NONE), 0);
    assert_false(memory_pages_read(pages, (uintptr_t)bytes + PAGE, &word, sizeof word));
    assert_false(memory_pages_read(pages, (uintptr_t)bytes + PAGE - 4, &word, sizeof word));
    assert_false(memory_pages_read(pages, 0, &word, sizeof word));
    assert_false(memory_pages_read(pages, UINT64_MAX - 3, &word, sizeof word));
    assert_int_equal(word_at(pages, bytes + PAGE - 8), PAGE - 8);
    memory_pages_close(pages);
    memory_pages_close(NULL);
    munmap(bytes, PAGES * PAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_read_once),
        cmocka_unit_test(a_word_may_lie_in_two_pages),
        cmocka_unit_test(more_pages_than_are_kept_are_right),
        cmocka_unit_test(what_is_not_readable_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
