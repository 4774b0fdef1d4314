/* Tests reading the kernel's report about a process (/proc/PID/stat): a real one and invented
 * ones. */
#include "unit.h"

#include "process/process_stat.h"

#include <sys/wait.h>
#include <unistd.h>

static void of_this_process(void **state) {
    (void)state;
    struct process_stat stat;
    assert_true(process_stat_read(&stat));
    assert_int_equal(stat.pid, getpid());
    assert_false(stat.is_dead);
    assert_int_equal(stat.threads, 1);
    assert_int_equal(stat.exit_status, 0);
}

static void a_child_has_not_called_exec(void **state) {
    (void)state;
    struct process_stat stat;
    assert_true(process_stat_read(&stat));
    assert_true(stat.has_called_exec);
    const pid_t child = fork();
    if (child == 0)
        _exit(!process_stat_read(&stat) || stat.has_called_exec);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_name_may_contain_anything(void **state) {
    (void)state;
    struct process_stat stat;
    assert_true(process_stat_parse("7 (a) Z 9 (b)) Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 2 0 5 0 0 "
                                   "1 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 1792\n",
                                   &stat));
    assert_int_equal(stat.pid, 7);
    assert_int_equal(stat.started, 5);
    assert_false(stat.is_dead); /* the main thread has ended, another has not */
    assert_int_equal(stat.threads, 2);
    assert_int_equal(stat.exit_status, 1792);
}

static void a_zombie_is_dead(void **state) {
    (void)state;
    struct process_stat stat;
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(process_stat_read_of(child, &stat));
    assert_true(stat.is_dead);
    assert_int_equal(stat.pid, child);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(process_stat_read_of(child, &stat));
}

static void a_truncated_stat_is_refused(void **state) {
    (void)state;
    struct process_stat stat;
    assert_false(process_stat_parse("", &stat));
    assert_false(process_stat_parse("7 (a)", &stat));
    assert_false(process_stat_parse("7 (a) Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 2 0 5\n", &stat));
    assert_false(process_stat_parse("7 (a) Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 x 0 5\n", &stat));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_this_process),
        cmocka_unit_test(a_child_has_not_called_exec),
        cmocka_unit_test(a_name_may_contain_anything),
        cmocka_unit_test(a_zombie_is_dead),
        cmocka_unit_test(a_truncated_stat_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
