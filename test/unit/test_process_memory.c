/* Tests the process's memory and limits, as /proc reports them. */
#include "unit.h"

#include "files/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

static void sizes_are_pages_of_the_text(void **state) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct process_memory memory;
    (void)state;
    assert_true(process_memory_parse("1000 200 150 7 0 300 0\n", &memory));
    assert_int_equal(memory.space, 1000 * page);
    assert_int_equal(memory.resident, 200 * page);
    assert_int_equal(memory.data, 300 * page);
    assert_false(process_memory_parse("", &memory));
    assert_false(process_memory_parse("nonsense\n", &memory));
    assert_false(process_memory_parse("1000 200 150\n", &memory));
}

static void a_limit_is_missing_or_a_number(void **state) {
    const struct process_limits none = process_limits_parse("");
    const struct process_limits some =
        process_limits_parse("Limit                     Soft Limit           Hard Limit\n"
                             "Max data size             0                    unlimited\n"
                             "Max address space         unlimited            unlimited\n");
    (void)state;
    assert_true(none.space == UINT64_MAX && none.data == UINT64_MAX);
    assert_true(some.space == UINT64_MAX && some.data == 0);
}

static void the_kernels_texts_have_this_form(void **state) {
    struct process_memory memory;
    struct process_limits limits;
    struct rlimit data;
    (void)state;
    assert_true(process_memory_read(&memory));
    assert_true(process_limits_read(&limits));
    assert_int_equal(getrlimit(RLIMIT_DATA, &data), 0);
    assert_true(memory.resident > 0 && memory.space > memory.resident && memory.data > 0);
    assert_true(limits.data == data.rlim_cur); /* RLIM_INFINITY is UINT64_MAX */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_pages_of_the_text),
        cmocka_unit_test(a_limit_is_missing_or_a_number),
        cmocka_unit_test(the_kernels_texts_have_this_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
