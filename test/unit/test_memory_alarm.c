/* Tests an export before memory runs out: how near a limit is, by files like the kernel's, and when
 * this is worth an export. */
#include "unit.h"

#include "control/memory_alarm.h"
#include "fake_capture.h"
#include "mount_folder.h"

static const uint64_t mib = 1 << 20;
static const uint64_t second = NANO_PER_SECOND;

static void say(const char *group, const char *name, uint64_t value) {
    char file[256];
    char text[64];
    snprintf(file, sizeof file, "%s/%s", group, name);
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)value);
    write_file(file, text);
}

static void make_group(const char *name, uint64_t limit_mib, uint64_t usage_mib) {
    make_folder(name);
    say(name, "memory.max", limit_mib * mib);
    say(name, "memory.current", usage_mib * mib);
}

/* Returns the nearness in thousandths. */
static unsigned nearness_of(const char *groups) {
    return (unsigned)(1000 * memory_limit_of_groups(mount, groups).nearness + 0.5);
}

/* --- limits --- */

static void nine_tenths_of_a_limit_are_near(void **state) {
    (void)state;
    make_group("a", 1000, 900);
    assert_int_equal(nearness_of("0::/a\n"), 1000);
    make_group("a", 1000, 450);
    assert_int_equal(nearness_of("0::/a\n"), 500);
}

/* Checks that a larger part of a small limit is left: an export takes megabytes, whatever the limit
 * is. */
static void of_a_small_limit_more_is_left(void **state) {
    (void)state;
    make_group("a", 48, 36);
    assert_int_equal(nearness_of("0::/a\n"), 1000);
    make_group("a", 8, 4);
    assert_int_equal(nearness_of("0::/a\n"), 1000);
}

static void pages_of_files_raise_no_alarm(void **state) {
    (void)state;
    make_group("f", 1000, 1000);
    write_file("f/memory.stat", "anon 7\ninactive_file 524288000\nactive_file 209715200\n");
    const struct memory_limit limit = memory_limit_of_groups(mount, "0::/f\n");
    assert_int_equal(limit.used, 300 * mib);
    assert_int_equal(nearness_of("0::/f\n"), 333);
}

static void the_nearest_level_counts(void **state) {
    (void)state;
    make_group("n", 1000, 800);
    make_group("n/o", 500, 100);
    const struct memory_limit limit = memory_limit_of_groups(mount, "0::/n/o\n");
    assert_int_equal(limit.limit, 1000 * mib);
    assert_string_equal(limit.of, "the control group");
}

static void memory_high_is_a_limit(void **state) {
    (void)state;
    make_group("h", 1000, 360);
    say("h", "memory.high", 400 * mib);
    const struct memory_limit limit = memory_limit_of_groups(mount, "0::/h\n");
    assert_int_equal(limit.limit, 400 * mib);
    assert_string_equal(limit.of, "memory.high");
    assert_int_equal(nearness_of("0::/h\n"), 1000);
}

static void the_older_version_has_other_names(void **state) {
    (void)state;
    make_folder("memory");
    make_folder("memory/g");
    say("memory/g", "memory.limit_in_bytes", 1000 * mib);
    say("memory/g", "memory.usage_in_bytes", 900 * mib);
    say("memory/g", "memory.failcnt", 17);
    const struct memory_limit limit = memory_limit_of_groups(mount, "4:memory:/g\n");
    assert_int_equal(limit.hits, 17);
    assert_int_equal(nearness_of("4:memory:/g\n"), 1000);
}

static void no_limit_is_never_near(void **state) {
    (void)state;
    make_group("u", 1000, 999);
    write_file("u/memory.max", "max\n");
    assert_null(memory_limit_of_groups(mount, "0::/u\n").of);
    assert_null(memory_limit_of_groups(mount, "").of);
    make_folder("memory");
    make_folder("memory/u");
    write_file("memory/u/memory.limit_in_bytes", "9223372036854771712\n");
    say("memory/u", "memory.usage_in_bytes", 1000 * mib);
    assert_null(memory_limit_of_groups(mount, "4:memory:/u\n").of);
}

static struct memory_limit limit_of(const char *limits, const char *statm) {
    struct process_memory memory;
    assert_true(process_memory_parse(statm, &memory));
    return memory_limit_of_process(process_limits_parse(limits), memory);
}

static void a_limit_of_the_process_is_one(void **state) {
    (void)state;
    static const char limits[] = "Limit Soft Hard Units\n"
                                 "Max data size             unlimited   unlimited   bytes\n"
                                 "Max address space         1073741824  unlimited   bytes\n";
    const long page = sysconf(_SC_PAGESIZE);
    char statm[128];
    snprintf(statm, sizeof statm, "%ld 7 7 7 0 %ld 0\n", (960 << 20) / page, (10 << 20) / page);
    const struct memory_limit limit = limit_of(limits, statm);
    assert_string_equal(limit.of, "RLIMIT_AS");
    assert_int_equal(limit.used, 960 * mib);
    assert_true(limit.nearness > 1);
    const struct memory_limit data = limit_of("Max data size   20971520   1\n", statm);
    assert_string_equal(data.of, "RLIMIT_DATA");
    assert_true(data.nearness == 1);
    assert_null(limit_of("Max data size   unlimited\n", statm).of);
    assert_null(limit_of("Max data size   0   0\n", statm).of);
}

/* --- the decision --- */

static struct capture_api api;
static uint64_t now;

static struct memory_alarm with_types(const char *types) {
    char text[128];
    snprintf(text, sizeof text, "OTEL_PROFILER_TYPES=%s", types);
    const char *const environment[] = {text, NULL};
    api = fake_capture(environment);
    now = 1000 * second;
    return memory_alarm_open(&api);
}

static struct memory_alarm opened(void) {
    return with_types("heap,heap_peak");
}

static bool follows(struct memory_alarm *alarm, double nearness) {
    const struct memory_limit limit = {.of = "the control group", .name = 1, .nearness = nearness};
    return memory_alarm_follow(alarm, &limit, now);
}

static void nothing_is_polled_without_the_type(void **state) {
    (void)state;
    assert_true(with_types("cpu,alloc,heap").next == UINT64_MAX);
    assert_true(opened().next == 0);
}

/* Reads nothing while a machine is too busy (OTEL_PROFILER_CPU_THRESHOLD), or with
 * OTEL_PROFILER_START=off. */
static void while_nothing_is_sampled_nothing_is_read(void **state) {
    (void)state;
    struct memory_alarm alarm = opened();
    fake.off = PROFILE_HEAP_PEAK;
    memory_alarm_poll(&alarm);
    assert_true(alarm.polled_at == 0 && alarm.next > 0 && alarm.next < UINT64_MAX);
    fake.off = 0;
    alarm.next = 0;
    memory_alarm_poll(&alarm);
    assert_true(alarm.polled_at > 0);
}

static void the_first_time_near_the_limit_exports_once(void **state) {
    (void)state;
    struct memory_alarm alarm = opened();
    assert_false(follows(&alarm, 0.99));
    assert_true(follows(&alarm, 1));
    for (int i = 0; i < 1000; i++, now += second)
        assert_false(follows(&alarm, 1.04));
}

static void it_exports_again_after_growth(void **state) {
    (void)state;
    struct memory_alarm alarm = opened();
    assert_true(follows(&alarm, 1));
    now += 9 * second;
    assert_false(follows(&alarm, 1.06)); /* too soon */
    now += second;
    assert_true(follows(&alarm, 1.06));
}

static void it_exports_again_after_a_fall(void **state) {
    (void)state;
    struct memory_alarm alarm = opened();
    assert_true(follows(&alarm, 1));
    now += 100 * second;
    assert_false(follows(&alarm, 0.96)); /* memory has not fallen */
    assert_false(follows(&alarm, 1));
    assert_false(follows(&alarm, 0.94));
    assert_true(follows(&alarm, 1));
}

/* Lets usage fall and rise again every two seconds, for an hour. */
static void a_process_at_its_limit_exports_ever_more_rarely(void **state) {
    (void)state;
    struct memory_alarm alarm = opened();
    unsigned alarms = 0;
    for (int i = 0; i < 1800; i++, now += 2 * second) {
        (void)follows(&alarm, 0.5);
        alarms += follows(&alarm, 1);
    }
    assert_in_range(alarms, 10, 20);
    now += 1000 * second;
    (void)follows(&alarm, 0.5);
    assert_true(follows(&alarm, 1));
    assert_true(alarm.not_before == now + 10 * second); /* as long as at first */
}

static bool follows_pressure(struct memory_alarm *alarm, uint64_t hits, uint64_t stalled) {
    const struct memory_limit limit = {
        .of = "the control group", .name = 1, .nearness = 0.9, .hits = hits, .stalled = stalled};
    now += second;
    return memory_alarm_follow(alarm, &limit, now);
}

static void a_process_that_is_held_up_exports_earlier(void **state) {
    (void)state;
    struct memory_alarm alarm = opened();
    assert_false(follows_pressure(&alarm, 5, 7000000)); /* the pressure so far */
    assert_false(follows_pressure(&alarm, 5, 7000000 + 99000));
    assert_true(follows_pressure(&alarm, 5, 7000000 + 200000));
    alarm = opened();
    assert_false(follows_pressure(&alarm, 5, 0));
    assert_true(follows_pressure(&alarm, 6, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nine_tenths_of_a_limit_are_near),
        cmocka_unit_test(of_a_small_limit_more_is_left),
        cmocka_unit_test(pages_of_files_raise_no_alarm),
        cmocka_unit_test(the_nearest_level_counts),
        cmocka_unit_test(memory_high_is_a_limit),
        cmocka_unit_test(the_older_version_has_other_names),
        cmocka_unit_test(no_limit_is_never_near),
        cmocka_unit_test(a_limit_of_the_process_is_one),
        cmocka_unit_test(nothing_is_polled_without_the_type),
        cmocka_unit_test(while_nothing_is_sampled_nothing_is_read),
        cmocka_unit_test(the_first_time_near_the_limit_exports_once),
        cmocka_unit_test(it_exports_again_after_growth),
        cmocka_unit_test(it_exports_again_after_a_fall),
        cmocka_unit_test(a_process_at_its_limit_exports_ever_more_rarely),
        cmocka_unit_test(a_process_that_is_held_up_exports_earlier),
    };
    return cmocka_run_group_tests(tests, make_mount, remove_mount);
}
