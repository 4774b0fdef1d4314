/* Tests that the search for an interpreter reads and changes its struct only while it is busy with
 * it. */
#include "unit.h"

#include "fake_syscall.h"
#include "frames/python.h"
#include "loader_counters.h"

#include <link.h>
#include <sys/syscall.h>

static struct python python;

/* --- the helper's poll --- */

static unsigned reads;
static bool was_busy;

/* Replaces the loader's counters. */
struct loader_counters loader_counters_read(void) {
    reads++;
    was_busy = atomic_load(&python.busy);
    return (struct loader_counters){7, 0};
}

static void a_poll_compares_the_counter_while_it_is_busy(void **state) {
    (void)state;
    python = (struct python){.wanted = true, .adds = 7};
    python_poll(&python);
    assert_int_equal(reads, 1);
    assert_true(was_busy);
    assert_false(atomic_load(&python.busy));
    assert_int_equal(python.adds, 7);
}

static void a_poll_leaves_a_busy_struct_alone(void **state) {
    (void)state;
    python = (struct python){.wanted = true, .busy = true};
    python_poll(&python);
    assert_true(atomic_load(&python.busy));
    assert_int_equal(python.adds, 0);
}

/* --- after dlclose() --- */

static uintptr_t present; /* the program headers of an object that is loaded */

static int take_headers(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    *(uintptr_t *)arg = (uintptr_t)info->dlpi_phdr;
    return 1;
}

/* Acts in the first sleep as the thread that was busy: it has found another interpreter. */
static long fake_syscall(long number, const long a[6]) {
    if (number != SYS_nanosleep)
        return real_syscall(number, a);
    python.object = present;
    atomic_store(&python.busy, false);
    return 0;
}

static void an_interpreter_found_meanwhile_is_kept(void **state) {
    (void)state;
    dl_iterate_phdr(take_headers, &present);
    python = (struct python){.on = true, .may_go = true, .busy = true, .object = 1, .adds = 7};
    python_forget_unloaded(&python);
    assert_int_equal(python.object, present);
    assert_true(atomic_load(&python.on));
    assert_int_equal(python.adds, 7);
}

static void an_unloaded_interpreter_is_forgotten(void **state) {
    (void)state;
    python = (struct python){.on = true, .may_go = true, .object = 1, .adds = 7};
    python_forget_unloaded(&python);
    assert_false(atomic_load(&python.on));
    assert_false(atomic_load(&python.busy));
    assert_int_equal(python.adds, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_poll_compares_the_counter_while_it_is_busy),
        cmocka_unit_test(a_poll_leaves_a_busy_struct_alone),
        cmocka_unit_test(an_interpreter_found_meanwhile_is_kept),
        cmocka_unit_test(an_unloaded_interpreter_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
