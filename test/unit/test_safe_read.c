/* Tests reads of memory that may go away, on a thread of the program: by the kernel's copy, and by
 * copies of checked pages while a filter of system calls is being installed. */
#include "unit.h"

#include "arch_memory.h"
#include "safe_read.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES = 2 };

/* Maps two pages, of which the second one is not readable. */
static char *half_readable(void) {
    char *const memory = mmap(NULL, PAGES * ARCH_SMALLEST_PAGE_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    memset(memory, 'x', ARCH_SMALLEST_PAGE_BYTES);
    assert_int_equal(
        mprotect(memory + ARCH_SMALLEST_PAGE_BYTES, ARCH_SMALLEST_PAGE_BYTES, PROT_NONE), 0);
    return memory;
}

static void reads_what_is_readable(bool is_filtered) {
    char *const memory = half_readable();
    const uint64_t end = (uintptr_t)memory + ARCH_SMALLEST_PAGE_BYTES;
    char copy[16] = "";
    errno = EDOM;
    assert_true(safe_read_here(end - sizeof copy, copy, sizeof copy, is_filtered));
    assert_int_equal(copy[0], 'x');
    assert_int_equal(copy[sizeof copy - 1], 'x');
    assert_false(safe_read_here(end - 8, copy, sizeof copy, is_filtered));
    assert_false(safe_read_here(end, copy, sizeof copy, is_filtered));
    assert_false(safe_read_here(8, copy, sizeof copy, is_filtered));
    assert_int_equal(errno, EDOM);
    munmap(memory, PAGES * ARCH_SMALLEST_PAGE_BYTES);
}

static void only_readable_memory_is_read_with_and_without_a_filter(void **state) {
    (void)state;
    reads_what_is_readable(false);
    reads_what_is_readable(true);
    safe_read_forbid_copies();
    reads_what_is_readable(false);
    safe_read_allow_copies();
}

/* Reads three ranges, of which one at most begins or ends where nothing can be read. */
static void ranges_are_read_up_to_the_first_that_is_not_readable(void **state) {
    (void)state;
    enum { RANGES = 3, EACH = 8 };
    char *const memory = half_readable();
    char *const last = memory + ARCH_SMALLEST_PAGE_BYTES - EACH;
    char copy[RANGES * EACH + 1];
    for (int filtered = 0; filtered < 2; filtered++)
        for (size_t bad = 0; bad <= RANGES; bad++)
            for (char *place = last + 1; place <= last + EACH; place += EACH - 1) {
                struct iovec ranges[RANGES];
                for (size_t i = 0; i < RANGES; i++)
                    ranges[i] = (struct iovec){i == bad ? place : memory + 64 * i, EACH};
                memset(copy, 0, sizeof copy);
                errno = EDOM;
                const size_t good = filtered ? 0 : bad;
                assert_int_equal(safe_read_ranges_here(ranges, RANGES, copy, filtered), good);
                for (size_t i = 0; i < good * EACH; i++)
                    assert_int_equal(copy[i], 'x');
                assert_int_equal(copy[RANGES * EACH], 0);
                assert_int_equal(errno, EDOM);
            }
    assert_int_equal(safe_read_ranges_here(NULL, 0, copy, false), 0);
    munmap(memory, PAGES * ARCH_SMALLEST_PAGE_BYTES);
}

/* Two threads may install filters at once; one of them is refused. */
static void a_refused_filter_gives_the_kernels_copies_back(void **state) {
    (void)state;
    assert_true(safe_read_may_copy());
    safe_read_forbid_copies();
    safe_read_forbid_copies();
    assert_false(safe_read_may_copy());
    safe_read_allow_copies();
    assert_false(safe_read_may_copy());
    safe_read_allow_copies();
    assert_true(safe_read_may_copy());
    assert_false(safe_read_copies());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_readable_memory_is_read_with_and_without_a_filter),
        cmocka_unit_test(ranges_are_read_up_to_the_first_that_is_not_readable),
        cmocka_unit_test(a_refused_filter_gives_the_kernels_copies_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
