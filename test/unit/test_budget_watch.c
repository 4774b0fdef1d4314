/* Tests when the cost of profiling is measured, and how the rates change then. */
#include "unit.h"

#include "control/control.h"
#include "fake_capture.h"
#include "fake_syscall.h"

static const uint64_t SECOND = NANO_PER_SECOND;

/* Holds the time of CLOCK_MONOTONIC, which only the test advances. */
static uint64_t now_nano = 1000000000000;

static long fake_syscall(long number, const long a[6]) {
    if (number != SYS_clock_gettime)
        return refuse_syscall(ENOSYS);
    if (a[0] != CLOCK_MONOTONIC)
        return real_syscall(number, a);
    *(struct timespec *)a[1] = timespec_of(now_nano);
    return 0;
}

static void without_lowered_rates_no_poll_is_planned(void **state) {
    (void)state;
    struct capture_api api = fake_capture((const char *const[]){NULL});
    struct control *const control = control_open(&api);
    assert_int_equal(control_next_poll(control), UINT64_MAX);
    now_nano += 10 * SECOND;
    control_poll(control, 10 * SECOND);
    assert_int_equal(control_next_poll(control), UINT64_MAX);
    assert_false(control_is_lowered(control));
    control_close(control);
}

/* Opens the control after samples have cost 20 ms. Each spend() then makes them cost a fifth of one
 * more second. */
static struct control *open_dear(struct capture_api *api, const char *const *environment) {
    *api = fake_capture(environment);
    fake.costs[SAMPLING_ALLOCATIONS] = (struct sampling_cost){20000000, 20000, 20000, 2000000};
    return control_open(api);
}

static void spend(struct control *control) {
    now_nano += SECOND;
    fake.costs[SAMPLING_ALLOCATIONS].cpu_nano += 200000000;
    fake.costs[SAMPLING_ALLOCATIONS].samples += 200000;
    fake.costs[SAMPLING_ALLOCATIONS].objects += 200000;
    fake.costs[SAMPLING_ALLOCATIONS].amount += 20000000;
    control_poll(control, SECOND);
}

static void costly_first_rates_are_checked_soon(void **state) {
    (void)state;
    struct capture_api api;
    struct control *control = open_dear(&api, (const char *const[]){NULL});
    assert_int_equal(control_next_poll(control), now_nano + SECOND / 4);
    control_close(control);
    control = open_dear(&api, (const char *const[]){"OTEL_PROFILER_MAX_OVERHEAD=none", NULL});
    assert_int_equal(control_next_poll(control), UINT64_MAX);
    control_close(control);
}

/* Acts as a child whose capture side still has the lowered rates of its parent: control_open() sets
 * the configured ones. */
static void a_child_begins_at_the_rates_that_are_set(void **state) {
    (void)state;
    struct capture_api api = fake_capture((const char *const[]){NULL});
    struct control *control = control_open(&api);
    assert_int_equal(fake.settings.alloc_interval, 0); /* capture has received no settings */
    control_close(control);
    api = fake_capture((const char *const[]){"OTEL_PROFILER_ALLOC_INTERVAL=1", NULL});
    assert_true(api.harvest.period(ALLOC_INTERVAL) > 1);
    control = control_open(&api);
    assert_int_equal(fake.settings.alloc_interval, 1);
    control_close(control);
}

static void lowered_rates_are_checked_within_a_second(void **state) {
    (void)state;
    struct capture_api api;
    struct control *const control =
        open_dear(&api, (const char *const[]){"OTEL_PROFILER_ALLOC_INTERVAL=1", NULL});
    spend(control);
    assert_true(control_is_lowered(control));
    assert_true(fake.settings.alloc_interval > 100);
    assert_int_equal(control_in_force(control).alloc_interval, fake.settings.alloc_interval);
    assert_true(control_next_poll(control) <= monotonic_nano() + SECOND);
    control_close(control);
}

static void a_request_and_a_recording_are_lowered_too(void **state) {
    (void)state;
    static const char finer[] = "OTEL_PROFILER_ALLOC_INTERVAL=1\n";
    static const char freely[] = "OTEL_PROFILER_MAX_OVERHEAD=none";
    char problem[CONTROL_PROBLEM];
    struct capture_api api;
    struct control *const control = open_dear(&api, (const char *const[]){NULL});
    assert_true(control_set(control, finer, sizeof finer - 1, problem));
    spend(control);
    const uint64_t lowered = fake.settings.alloc_interval;
    assert_true(lowered > 100);
    const uint32_t recording = control_record(control, finer, sizeof finer - 1, problem);
    assert_int_equal(fake.settings.alloc_interval, lowered);
    control_record_end(control, recording);
    assert_true(control_set(control, freely, sizeof freely - 1, problem));
    assert_int_equal(fake.settings.alloc_interval, 1);
    assert_false(control_is_lowered(control));
    control_close(control);
}

static void set_interval(struct control *control, int bytes) {
    char problem[CONTROL_PROBLEM];
    char text[64];
    const int size = snprintf(text, sizeof text, "OTEL_PROFILER_ALLOC_INTERVAL=%d\n", bytes);
    assert_true(control_set(control, text, (size_t)size, problem));
    assert_true(fake.settings.alloc_interval >= (uint64_t)bytes);
}

/* Has the helper begin in the first interval, which is short. */
static void the_start_of_the_helper_is_not_its_share_of_an_interval(void **state) {
    (void)state;
    struct capture_api api =
        fake_capture((const char *const[]){"OTEL_PROFILER_MAX_OVERHEAD=50", NULL});
    struct control *const control = control_open(&api);
    now_nano += SECOND;
    fake.helper_nano += 150 * (uint64_t)NANO_PER_MILLI;
    control_poll(control, SECOND);
    set_interval(control, 1000);
    now_nano += SECOND;
    fake.costs[SAMPLING_ALLOCATIONS] =
        (struct sampling_cost){35 * (uint64_t)NANO_PER_MILLI, 35000, 70000, 35000000};
    control_poll_again(control);
    assert_false(control_is_lowered(control)); /* 35 of 50 ms */
    control_close(control);
}

/* Runs ten seconds in which samples cost 40 of the 50 ms that the budget has, while a client
 * requests an export each second, which costs the helper `request_nano`; the process's own interval
 * is a minute. Returns true if rates are lowered. */
static bool is_lowered_by_requests(uint64_t request_nano) {
    struct capture_api api = fake_capture((const char *const[]){
        "OTEL_PROFILER_MAX_OVERHEAD=50", "OTEL_PROFILE_EXPORT_INTERVAL=60000", NULL});
    struct control *const control = control_open(&api);
    set_interval(control, 1000);
    for (int i = 0; i < 10; i++) {
        now_nano += SECOND;
        fake.helper_nano += request_nano;
        fake.costs[SAMPLING_ALLOCATIONS].cpu_nano += 40 * (uint64_t)NANO_PER_MILLI;
        fake.costs[SAMPLING_ALLOCATIONS].samples += 40000;
        fake.costs[SAMPLING_ALLOCATIONS].objects += 80000;
        fake.costs[SAMPLING_ALLOCATIONS].amount += 40000000;
        control_poll(control, SECOND);
    }
    const bool is_lowered = control_is_lowered(control);
    control_close(control);
    return is_lowered;
}

static void exports_on_request_count_before_the_interval_ends(void **state) {
    (void)state;
    assert_false(is_lowered_by_requests(0));
    assert_true(is_lowered_by_requests(300 * (uint64_t)NANO_PER_MILLI));
}

/* Advances the clock by `nano` ns, of which samples take a fifth if they are dear, and otherwise
 * nothing. Polls if a poll is due. */
static void go_by(struct control *control, uint64_t nano, bool are_dear) {
    now_nano += nano;
    if (are_dear) {
        fake.costs[SAMPLING_ALLOCATIONS].cpu_nano += nano / 5;
        fake.costs[SAMPLING_ALLOCATIONS].samples += nano / 5000;
        fake.costs[SAMPLING_ALLOCATIONS].objects += nano / 5000;
        fake.costs[SAMPLING_ALLOCATIONS].amount += nano / 50;
    }
    if (control_next_poll(control) <= now_nano)
        control_poll_again(control);
}

static void a_client_that_sets_another_rate_again_and_again_puts_nothing_off(void **state) {
    (void)state;
    struct capture_api api = fake_capture((const char *const[]){NULL});
    struct control *const control = control_open(&api);
    for (int i = 0; i < 20; i++) {
        set_interval(control, 1 + i % 2);
        go_by(control, SECOND / 16, true);
    }
    assert_true(control_is_lowered(control));
    assert_true(fake.settings.alloc_interval > 10);
    control_close(control);
}

/* Sets a dear rate shortly before a check that finds cheap samples. */
static void a_costly_rate_set_shortly_before_a_check_is_checked_again(void **state) {
    (void)state;
    struct capture_api api = fake_capture((const char *const[]){NULL});
    struct control *const control = control_open(&api);
    set_interval(control, 1000000);
    go_by(control, SECOND - SECOND / 64, false);
    set_interval(control, 1);
    go_by(control, SECOND / 64, true);
    assert_false(control_is_lowered(control));
    assert_int_equal(control_next_poll(control), now_nano + SECOND);
    go_by(control, SECOND, true);
    assert_true(control_is_lowered(control));
    control_close(control);
}

/* Lifts the limit while a check is due: otherwise the exporter's thread would check again and again
 * without end. */
static void a_lifted_limit_ends_the_checks(void **state) {
    (void)state;
    static const char freely[] = "OTEL_PROFILER_MAX_OVERHEAD=none";
    char problem[CONTROL_PROBLEM];
    struct capture_api api = fake_capture((const char *const[]){NULL});
    struct control *const control = control_open(&api);
    set_interval(control, 1);
    assert_int_equal(control_next_poll(control), now_nano + SECOND);
    assert_true(control_set(control, freely, sizeof freely - 1, problem));
    go_by(control, SECOND, true);
    assert_int_equal(control_next_poll(control), UINT64_MAX);
    control_close(control);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_lowered_rates_no_poll_is_planned),
        cmocka_unit_test(costly_first_rates_are_checked_soon),
        cmocka_unit_test(a_child_begins_at_the_rates_that_are_set),
        cmocka_unit_test(lowered_rates_are_checked_within_a_second),
        cmocka_unit_test(a_client_that_sets_another_rate_again_and_again_puts_nothing_off),
        cmocka_unit_test(a_costly_rate_set_shortly_before_a_check_is_checked_again),
        cmocka_unit_test(a_lifted_limit_ends_the_checks),
        cmocka_unit_test(a_request_and_a_recording_are_lowered_too),
        cmocka_unit_test(exports_on_request_count_before_the_interval_ends),
        cmocka_unit_test(the_start_of_the_helper_is_not_its_share_of_an_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
