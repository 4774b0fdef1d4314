/* Tests that a forked child keeps no wait of its parent. */
#include "unit.h"

#include "kernel/profiler_memory.h"
#include "wait/wait_account.h"

enum { DEPTH = 8 };

/* Acts as after a fork where the kernel wipes no memory (before Linux 4.14, or emulated). */
static void a_child_keeps_no_account_behind_a_segment_that_is_missing(void **state) {
    (void)state;
    static const uint32_t slots[] = {1, 3 * THREADS_PER_SEGMENT + 1,
                                     THREAD_SEGMENTS * THREADS_PER_SEGMENT - 1};
    struct wait_accounts *const accounts = wait_accounts_open(DEPTH);
    assert_non_null(accounts);
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        struct wait_account *const account = wait_account_at(accounts, slots[i]);
        assert_non_null(account);
        account->begun_ns = 1;
        account->pending_ns = 1000;
    }
    assert_null(accounts->segments[1]);
    profiler_memory_after_fork(false);
    wait_accounts_after_fork(accounts);
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        assert_int_equal(wait_account_at(accounts, slots[i])->begun_ns, 0);
        assert_int_equal(wait_account_at(accounts, slots[i])->pending_ns, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_keeps_no_account_behind_a_segment_that_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
