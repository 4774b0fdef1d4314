/* Tests memory of the profiler's own, as the kernel reports it. */
#include "unit.h"

#include "kernel/profiler_memory.h"
#include "kernel/stepped_memory.h"

enum { PAGE = 65536 }; /* the largest page size of a kernel */

/* Reads the flags of the mapping that holds `memory` from /proc/self/smaps, as a line of text; ""
 * if there is no such mapping. */
static void read_flags(const void *memory, char *flags, int size) {
    char line[256];
    bool here = false;
    FILE *const maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    flags[0] = 0;
    while (fgets(line, sizeof line, maps)) {
        uintptr_t start;
        uintptr_t end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            here = (uintptr_t)memory >= start && (uintptr_t)memory < end;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(flags, (size_t)size, "%s", line);
    }
    fclose(maps);
}

/* Keeps a table of 8 MiB of which a few bytes are used in a few pages, not four huge ones. */
static void it_is_in_small_pages(void **state) {
    (void)state;
    const size_t size = 8 << 20;
    char flags[256];
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0)
        skip();
    void *const memory = profiler_memory_map(size);
    assert_non_null(memory);
    read_flags(memory, flags, sizeof flags);
    assert_non_null(strstr(flags, " nh"));
    profiler_memory_unmap(memory, size);
}

/* Takes parts of a mapping that was made ahead. A part that does not fit gets a mapping of its
 * own. */
static void parts_lie_in_the_mapping_made_ahead(void **state) {
    (void)state;
    profiler_memory_map_ahead(3 * PAGE, 0);
    char *const first = profiler_memory_part(PAGE);
    char *const second = profiler_memory_part(2 * PAGE);
    char *const beyond = profiler_memory_part(PAGE);
    char flags[256];
    assert_non_null(first);
    assert_ptr_equal(second, first + PAGE);
    read_flags(second, flags, sizeof flags);
    assert_non_null(strstr(flags, " wf"));
    assert_non_null(beyond);
    assert_true(beyond < first || beyond >= first + 3 * PAGE);
    beyond[0] = second[2 * PAGE - 1] = 1;
    profiler_memory_unmap(beyond, PAGE);
}

static bool is_writable(const void *memory) {
    char flags[256];
    read_flags(memory, flags, sizeof flags);
    return strstr(flags, " wr") != NULL;
}

/* Follows the rule of vm.overcommit_memory=2: private writable memory is charged, touched or
 * not. */
static void a_table_is_writable_where_it_was_opened(void **state) {
    (void)state;
    const size_t size = 16 << 20;
    const size_t step = size / 64;
    struct stepped_memory table;
    stepped_memory_allow(UINT64_MAX);
    char *const start = stepped_memory_map(&table, size);
    assert_non_null(start);
    assert_int_equal(start[size - 1], 0);
    assert_false(is_writable(start));
    assert_true(stepped_memory_open(&table, start + step - 1, 2));
    start[step - 1] = start[step] = 1;
    assert_true(is_writable(start));
    assert_true(is_writable(start + 2 * step - 1));
    assert_false(is_writable(start + 2 * step));
    assert_true(stepped_memory_open(&table, start + size - 1, 1));
    start[size - 1] = 1;
    assert_false(is_writable(start + size - step - 1));
    profiler_memory_unmap(start, size);
}

/* Acts as under a control group that leaves four steps of this table to the process. */
static void a_limit_of_memory_bounds_all_tables(void **state) {
    (void)state;
    const size_t size = 16 << 20;
    const size_t step = size / 64;
    struct stepped_memory table;
    char *const start = stepped_memory_map(&table, size);
    assert_non_null(start);
    stepped_memory_allow(4 * step);
    assert_true(stepped_memory_open(&table, start, 1));
    assert_false(stepped_memory_open(&table, start + step, 1));
    assert_false(stepped_memory_charge(1));
    assert_true(stepped_memory_open(&table, start, step));
    stepped_memory_allow(UINT64_MAX);
    assert_true(stepped_memory_open(&table, start + step, 1));
    profiler_memory_unmap(start, size);
}

/* Acts as after a fork under an emulator that returns success for MADV_WIPEONFORK, but wipes
 * nothing. */
static void a_child_empties_memory_that_the_kernel_did_not_wipe(void **state) {
    (void)state;
    char *const memory = profiler_memory_map(PAGE);
    assert_non_null(memory);
    memory[0] = 1;
    profiler_memory_after_fork(true);
    assert_true(profiler_memory_is_emptied());
    profiler_memory_reset_in_child(memory, PAGE);
    assert_int_equal(memory[0], 1);
    profiler_memory_after_fork(false);
    assert_false(profiler_memory_is_emptied());
    profiler_memory_reset_in_child(memory, PAGE);
    assert_int_equal(memory[0], 0);
    profiler_memory_unmap(memory, PAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_in_small_pages),
        cmocka_unit_test(parts_lie_in_the_mapping_made_ahead),
        cmocka_unit_test(a_table_is_writable_where_it_was_opened),
        cmocka_unit_test(a_limit_of_memory_bounds_all_tables),
        cmocka_unit_test(a_child_empties_memory_that_the_kernel_did_not_wipe)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
