/* Tests the crash guard's judgement: which starts have failed, by their record, a clock and the
 * processes that live. */
#include "unit.h"

#include "clock.h"
#include "process/crash_record.h"

enum { APP = 77, OTHER = 78, HERE = 1, ELSEWHERE = 2, FIRST_PID = 1000, PIDS = 4096 };

static struct crash_record record;
static bool gone[PIDS];
static int looks;

static int64_t seconds(int64_t count) {
    return count * (int64_t)NANO_PER_SECOND;
}

static bool look(const struct crash_start *start, const struct crash_start *own) {
    (void)own;
    looks++;
    return gone[start->pid];
}

static int begin(void **state) {
    (void)state;
    memset(&record, 0, sizeof record);
    memset(gone, 0, sizeof gone);
    looks = 0;
    return 0;
}

static struct crash_start start_of(uint64_t executable, uint64_t pid, int64_t at) {
    struct crash_start start = {.executable = executable,
                                .pid_namespace = HERE,
                                .process_started = 5 * pid,
                                .began_nano = seconds(at),
                                .pid = pid};
    crash_record_seal(&start);
    return start;
}

/* Judges a start, and records the start or the pause, as a process does at its start. Returns the
 * verdict. */
static enum crash_verdict starts(uint64_t executable, uint64_t pid, int64_t at) {
    const struct crash_start own = start_of(executable, pid, at);
    const enum crash_verdict verdict = crash_record_judge(&record, &own, look);
    if (verdict == CRASH_ADMITTED)
        record.starts[crash_record_place(&record, &own)] = own;
    if (verdict == CRASH_FAILS)
        record.pauses[crash_record_pause_place(&record, executable, seconds(at))] =
            (struct crash_pause){executable, seconds(at)};
    return verdict;
}

static struct crash_start *place_of(uint64_t pid) {
    for (int i = 0; i < CRASH_STARTS; i++)
        if (record.starts[i].pid == pid)
            return &record.starts[i];
    fail_msg("no start of %d", (int)pid);
    return NULL;
}

static void settles(uint64_t pid) {
    place_of(pid)->completed = (struct timespec){1, 2};
    gone[pid] = true;
}

static void fails_at(uint64_t pid, int64_t at) {
    assert_int_equal(starts(APP, pid, at), CRASH_ADMITTED);
    gone[pid] = true;
}

static void fail_three_times(int64_t at) {
    for (int i = 0; i < CRASH_MOST_FAILURES; i++)
        fails_at((uint64_t)(at % 1000) + FIRST_PID + (uint64_t)i, at + i);
}

static void three_failed_starts_are_followed_by_an_hour_alone(void **state) {
    (void)state;
    fail_three_times(0);
    assert_int_equal(starts(APP, 1, 10), CRASH_FAILS);
    assert_int_equal(starts(APP, 2, 11), CRASH_LEFT_ALONE);
    assert_int_equal(starts(APP, 3, 10 + CRASH_PAUSE_S - 1), CRASH_LEFT_ALONE);
    assert_int_equal(starts(APP, 4, 10 + CRASH_PAUSE_S), CRASH_ADMITTED);
}

static void it_is_said_once_an_hour(void **state) {
    (void)state;
    for (int64_t hour = 0; hour < 40; hour++) { /* more hours than there are pauses */
        fail_three_times(hour * 4000);
        assert_int_equal(starts(APP, 1, hour * 4000 + 10), CRASH_FAILS);
        assert_int_equal(starts(APP, 2, hour * 4000 + 10), CRASH_LEFT_ALONE);
    }
}

static void two_failed_starts_are_not_enough(void **state) {
    (void)state;
    fails_at(1, 0);
    fails_at(2, 1);
    assert_int_equal(starts(APP, 3, 2), CRASH_ADMITTED);
}

static void failed_starts_count_for_ten_minutes(void **state) {
    (void)state;
    fail_three_times(0);
    assert_int_equal(starts(APP, 1, CRASH_WINDOW_S), CRASH_ADMITTED);
}

static void each_executable_has_failures_of_its_own(void **state) {
    (void)state;
    fail_three_times(0);
    assert_int_equal(starts(OTHER, 1, 5), CRASH_ADMITTED);
    assert_int_equal(starts(APP, 2, 5), CRASH_FAILS);
    assert_int_equal(starts(OTHER, 3, 6), CRASH_ADMITTED);
}

static void a_living_process_has_not_failed(void **state) {
    (void)state;
    for (uint64_t pid = 1; pid <= 20; pid++)
        assert_int_equal(starts(APP, pid, 0), CRASH_ADMITTED);
    assert_int_equal(starts(APP, 21, 500), CRASH_ADMITTED);
}

static void a_settled_process_has_not_failed(void **state) {
    (void)state;
    for (uint64_t pid = 1; pid <= 300; pid++) {
        assert_int_equal(starts(APP, pid, (int64_t)pid), CRASH_ADMITTED);
        settles(pid);
    }
}

static void failures_among_many_that_live_are_found(void **state) {
    (void)state;
    for (uint64_t pid = 1; pid <= 20; pid++)
        assert_int_equal(starts(APP, pid, 0), CRASH_ADMITTED);
    gone[3] = gone[9] = gone[17] = true;
    assert_int_equal(starts(APP, 21, 1), CRASH_FAILS);
}

static void a_start_probes_few_processes(void **state) {
    (void)state;
    for (uint64_t pid = 1; pid <= 1000; pid++)
        assert_int_equal(starts(APP, pid, 0), CRASH_ADMITTED);
    looks = 0;
    assert_int_equal(starts(APP, 1001, 1), CRASH_ADMITTED);
    assert_int_equal(looks, CRASH_MOST_PROBES);
}

static void exec_of_the_same_program_is_the_same_process(void **state) {
    (void)state;
    for (int64_t i = 0; i < 9; i++)
        assert_int_equal(starts(APP, 7, i), CRASH_ADMITTED);
    gone[7] = true;
    assert_int_equal(starts(APP, 8, 10), CRASH_ADMITTED);
}

static void exec_settles_the_program_before(void **state) {
    (void)state;
    for (uint64_t pid = 1; pid <= 9; pid++) {
        assert_int_equal(starts(APP, pid, (int64_t)pid), CRASH_ADMITTED);
        assert_int_equal(starts(OTHER, pid, (int64_t)pid), CRASH_ADMITTED);
        settles(pid);
    }
}

static void another_process_of_the_same_pid_is_another(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        struct crash_start own = start_of(APP, 7, (int64_t)i);
        own.process_started = i;
        crash_record_seal(&own);
        assert_int_equal(crash_record_judge(&record, &own, look), CRASH_ADMITTED);
        record.starts[crash_record_place(&record, &own)] = own;
    }
    gone[7] = true;
    assert_int_equal(starts(APP, 7, 9), CRASH_FAILS);
}

static void another_namespace_is_another_process(void **state) {
    (void)state;
    struct crash_start own = start_of(APP, 7, 0);
    own.pid_namespace = ELSEWHERE;
    crash_record_seal(&own);
    record.starts[crash_record_place(&record, &own)] = own;
    assert_int_equal(starts(APP, 7, 1), CRASH_ADMITTED);
    assert_int_equal(looks, 1);
}

static void a_half_written_start_is_ignored(void **state) {
    (void)state;
    fail_three_times(0);
    place_of(FIRST_PID)->process_started++;
    assert_int_equal(starts(APP, 1, 5), CRASH_ADMITTED);
}

static void a_start_in_the_future_is_ignored(void **state) {
    (void)state;
    fail_three_times(100);
    assert_int_equal(starts(APP, 1, 50), CRASH_ADMITTED);
    record.pauses[0] = (struct crash_pause){APP, seconds(1000)};
    assert_int_equal(starts(APP, 2, 50), CRASH_ADMITTED);
}

static void any_bytes_are_judged_and_have_a_place(void **state) {
    (void)state;
    srand(1);
    for (int i = 0; i < 1000; i++) {
        for (size_t at = 0; at < sizeof record; at++)
            ((unsigned char *)&record)[at] = (unsigned char)rand();
        const struct crash_start own = start_of(APP, (uint64_t)i, i);
        assert_int_equal(crash_record_judge(&record, &own, look), CRASH_ADMITTED);
        assert_true(crash_record_place(&record, &own) < CRASH_STARTS);
        assert_true(crash_record_pause_place(&record, APP, seconds(i)) < CRASH_PAUSES);
    }
}

static void the_oldest_makes_place(void **state) {
    (void)state;
    for (uint64_t pid = 1; pid <= CRASH_STARTS; pid++)
        assert_int_equal(starts(APP, pid, pid == 50 ? 0 : 1), CRASH_ADMITTED);
    struct crash_start *const oldest = place_of(50);
    assert_int_equal(starts(OTHER, 999, 2), CRASH_ADMITTED);
    assert_int_equal(oldest->pid, 999);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(three_failed_starts_are_followed_by_an_hour_alone, begin),
        cmocka_unit_test_setup(it_is_said_once_an_hour, begin),
        cmocka_unit_test_setup(two_failed_starts_are_not_enough, begin),
        cmocka_unit_test_setup(failed_starts_count_for_ten_minutes, begin),
        cmocka_unit_test_setup(each_executable_has_failures_of_its_own, begin),
        cmocka_unit_test_setup(a_living_process_has_not_failed, begin),
        cmocka_unit_test_setup(a_settled_process_has_not_failed, begin),
        cmocka_unit_test_setup(failures_among_many_that_live_are_found, begin),
        cmocka_unit_test_setup(a_start_probes_few_processes, begin),
        cmocka_unit_test_setup(exec_of_the_same_program_is_the_same_process, begin),
        cmocka_unit_test_setup(exec_settles_the_program_before, begin),
        cmocka_unit_test_setup(another_process_of_the_same_pid_is_another, begin),
        cmocka_unit_test_setup(another_namespace_is_another_process, begin),
        cmocka_unit_test_setup(a_half_written_start_is_ignored, begin),
        cmocka_unit_test_setup(a_start_in_the_future_is_ignored, begin),
        cmocka_unit_test_setup(any_bytes_are_judged_and_have_a_place, begin),
        cmocka_unit_test_setup(the_oldest_makes_place, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
