/* Tests taking offsets from an interpreter's own table, and reading its memory. */
#include "python_tables.h"

#include "frames/python_reader.h"

#include <sys/mman.h>

/* --- versions --- */

static void tables_that_make_no_sense_are_not_taken(void **state) {
    struct python_offsets offsets;
    (void)state;
    assert_true(python_offsets_find(0x030d00f0, of_3_13, &offsets));
    assert_int_equal(offsets.current_frame, 72);
    assert_int_equal(offsets.owner, 70);
    assert_int_equal(offsets.string_wide, 56);
    /* the table belongs to another version */
    assert_false(python_offsets_find(0x030d01f0, of_3_13, &offsets));
    assert_false(python_offsets_find(0x030f00b4, of_3_15, &offsets)); /* a beta */
    assert_false(python_offsets_find(0x031000f0, of_3_15, &offsets));
    assert_false(python_offsets_find(0x030a00f0, of_3_13, &offsets));
    assert_false(python_offsets_find(0x020712f0, of_3_13, &offsets));
    for (size_t word = 0; word < 73; word++) {
        uint64_t damaged[PYTHON_TABLE_BYTES / 8];
        memcpy(damaged, of_3_13, sizeof damaged);
        damaged[word] = UINT64_MAX / 3;
        (void)python_offsets_find(0x030d00f0, damaged, &offsets);
        assert_true(offsets.owner < PYTHON_FRAME_BYTES || word == 33);
    }
    uint64_t threaded[PYTHON_TABLE_BYTES / 8];
    memcpy(threaded, of_3_13, sizeof threaded);
    threaded[2] = 1;
    assert_false(python_offsets_find(0x030d00f0, threaded, &offsets));
    memcpy(threaded, of_3_13, sizeof threaded);
    threaded[33] = PYTHON_FRAME_BYTES; /* the owner would be read behind the copy */
    assert_false(python_offsets_find(0x030d00f0, threaded, &offsets));
}

/* --- reading --- */

static void only_mapped_memory_is_read(void **state) {
    const size_t page = 4096;
    uint8_t *const pages =
        mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct python_reader reader = {.of_another = false};
    uint8_t bytes[64];
    uintptr_t word;
    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    const uintptr_t hole = (uintptr_t)pages + page;
    assert_true(python_read(&reader, hole - sizeof bytes, bytes, sizeof bytes));
    assert_false(python_read(&reader, hole - 63, bytes, sizeof bytes));
    assert_false(python_read(&reader, hole, bytes, 1));
    assert_true(python_read(&reader, hole + page, bytes, sizeof bytes));
    assert_false(python_read_word(&reader, hole + page + 4, &word));
    assert_false(python_read(&reader, 0, bytes, 8));
    assert_false(python_read(&reader, UINTPTR_MAX - 7, bytes, 8));
    assert_false(python_read(&reader, UINTPTR_MAX - 7, bytes, 16));
    assert_false(python_read(&reader, 1ul << 63, bytes, 8));
    munmap(pages, 3 * page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_that_make_no_sense_are_not_taken),
        cmocka_unit_test(only_mapped_memory_is_read),
    };
    fill_tables();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
