/* Tests the room that limits leave to the process: those of control groups, read from folders like
 * the kernel's, and its own. */
#include "unit.h"

#include "control/memory_room.h"
#include "files/by_path.h"
#include "mount_folder.h"
#include "serve/window.h"

#include <sys/resource.h>
#include <unistd.h>

static void make_group(const char *name, const char *limit, const char *usage) {
    char path[512];
    make_folder(name);
    snprintf(path, sizeof path, "%s/memory.max", name);
    write_file(path, limit);
    snprintf(path, sizeof path, "%s/memory.current", name);
    write_file(path, usage);
}

static void no_limit_is_no_limit(void **state) {
    (void)state;
    assert_true(memory_room_in(mount, "0::/\n") == UINT64_MAX);
    assert_true(memory_room_in(mount, "") == UINT64_MAX);
    make_group("a", "max\n", "5000\n");
    assert_true(memory_room_in(mount, "0::/a\n") == UINT64_MAX);
}

static void the_tightest_level_counts(void **state) {
    (void)state;
    make_group("a", "1000000\n", "400000\n");
    make_group("a/b", "900000\n", "100000\n");
    make_group("a/b/c", "max\n", "1\n");
    assert_int_equal(memory_room_in(mount, "1:name=systemd:/x\n0::/a/b/c\n"), 600000);
    make_group("a/b/c", "100\n", "250\n");
    assert_int_equal(memory_room_in(mount, "0::/a/b/c\n"), 0);
    assert_int_equal(memory_room_in(mount, "0::/a/b\n"), 600000);
}

static void pages_of_files_are_as_good_as_free(void **state) {
    (void)state;
    make_group("f", "1000000\n", "900000\n");
    write_file("f/memory.stat", "anon 7\nfile 500\ninactive_file 200000\nactive_file 100000\n");
    assert_int_equal(memory_room_in(mount, "0::/f\n"), 400000);
}

/* Acts as in a container that has its own group mounted, but has no namespace of groups of its
 * own. */
static void the_mount_may_be_of_the_group(void **state) {
    (void)state;
    make_group(".", "1000000\n", "300000\n");
    assert_int_equal(memory_room_in(mount, "0::/docker/1234/not-there\n"), 700000);
    assert_int_equal(memory_room_in(mount, "0::/../other\n"), 700000);
}

static void the_older_version_has_other_names(void **state) {
    (void)state;
    make_group("memory", "1\n", "0\n");
    write_file("memory/memory.limit_in_bytes", "800000\n");
    write_file("memory/memory.usage_in_bytes", "500000\n");
    write_file("memory/memory.stat", "inactive_file 9\ntotal_inactive_file 50000\n");
    assert_int_equal(memory_room_in(mount, "4:memory:/there/is/none\n3:cpu:/\n"), 350000);
}

static void a_text_that_is_no_number_is_no_limit(void **state) {
    (void)state;
    make_group("a", "many\n", "-3\n");
    make_group(".", "max\n", "0\n");
    assert_true(memory_room_in(mount, "0::/a\nnonsense\n:\n::\n0::a") == UINT64_MAX);
}

/* Limits windows: a client of a port must not have the process killed for memory. */
static void windows_take_a_part_of_the_remaining_memory(void **state) {
    (void)state;
    const uint64_t mebibyte = 1 << 20;
    assert_int_equal(windows_most_bytes(0, 0, UINT64_MAX), 64 * mebibyte);
    assert_int_equal(windows_most_bytes(0, 0, 1024 * mebibyte), 64 * mebibyte);
    assert_int_equal(windows_most_bytes(0, 0, 16 * mebibyte), 4 * mebibyte);
    assert_int_equal(windows_most_bytes(4 * mebibyte, 0, 12 * mebibyte), 4 * mebibyte);
    assert_int_equal(windows_most_bytes(4 * mebibyte, 0, 0), mebibyte);
    /* sums count against a limit alone: without one they never refuse a window */
    assert_int_equal(windows_most_bytes(0, 4 * mebibyte, 28 * mebibyte), 4 * mebibyte);
    assert_int_equal(windows_most_bytes(mebibyte, 40 * mebibyte, 28 * mebibyte), 28 * mebibyte / 8);
    assert_int_equal(windows_most_bytes(mebibyte, 40 * mebibyte, 0), 0);
    assert_int_equal(windows_most_bytes(1, 100 * mebibyte, UINT64_MAX), WINDOW_MOST_BYTES);
}

/* Reads texts in the form of proc(5). */
static uint64_t room_of(const char *limits, const char *statm) {
    struct process_memory memory;
    assert_true(process_memory_parse(statm, &memory));
    return memory_room_of_limits(process_limits_parse(limits), memory);
}

static void limits_of_the_process_count(void **state) {
    (void)state;
    static const char unlimited[] =
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max data size             unlimited            unlimited            bytes     \n"
        "Max address space         unlimited            unlimited            bytes     \n";
    static const char data[] =
        "Max data size             1048576              unlimited            bytes     \n"
        "Max address space         unlimited            unlimited            bytes     \n";
    static const char space[] =
        "Max data size             1048576              unlimited            bytes     \n"
        "Max address space         0                    unlimited            bytes     \n";
    char statm[64];
    const int pages = (int)(1048576 / sysconf(_SC_PAGESIZE));
    snprintf(statm, sizeof statm, "%d 50 30 2 0 %d 0\n", 2 * pages, pages / 4);
    assert_true(room_of(unlimited, statm) == UINT64_MAX);
    assert_int_equal(room_of(data, statm), 786432);
    assert_int_equal(room_of(space, statm), 0);
    assert_true(room_of("", statm) == UINT64_MAX);
}

static void a_limit_of_this_process_is_read(void **state) {
    struct rlimit before;
    struct rlimit low;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    low = before;
    low.rlim_cur = UINT64_C(1) << 40;
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    const uint64_t room = memory_room_of_program();
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true(room < UINT64_C(1) << 40);
}

/* Refuses every path, as after the program has changed its root, and counts the questions. */
static unsigned questions;
static bool refuse(void) {
    questions++;
    return false;
}

static void no_file_is_opened_where_paths_may_lead_elsewhere(void **state) {
    struct process_memory memory;
    struct process_limits limits;
    char groups[KERNEL_TEXT_BYTES];
    (void)state;
    by_path_set_check(refuse);
    assert_true(memory_room() == UINT64_MAX);
    assert_int_equal(questions, 1);
    assert_true(memory_room_of_program() == UINT64_MAX);
    assert_false(process_memory_read(&memory));
    assert_false(process_limits_read(&limits));
    assert_false(process_groups_read(groups));
    by_path_set_check(NULL);
    assert_true(process_memory_read(&memory));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_is_no_limit),
        cmocka_unit_test(the_tightest_level_counts),
        cmocka_unit_test(pages_of_files_are_as_good_as_free),
        cmocka_unit_test(the_mount_may_be_of_the_group),
        cmocka_unit_test(the_older_version_has_other_names),
        cmocka_unit_test(a_text_that_is_no_number_is_no_limit),
        cmocka_unit_test(windows_take_a_part_of_the_remaining_memory),
        cmocka_unit_test(limits_of_the_process_count),
        cmocka_unit_test(a_limit_of_this_process_is_read),
        cmocka_unit_test(no_file_is_opened_where_paths_may_lead_elsewhere),
    };
    return cmocka_run_group_tests(tests, make_mount, remove_mount);
}
