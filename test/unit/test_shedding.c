/* Tests OTEL_PROFILER_CPU_THRESHOLD: how busy processors are, by files like the kernel's, and when
 * the profiler gives way. */
#include "unit.h"

#include "control/shedding.h"
#include "fake_capture.h"
#include "mount_folder.h"

static void make_group(const char *name, const char *limit, const char *usage_usec) {
    char file[256];
    char text[256];
    make_folder(name);
    snprintf(file, sizeof file, "%s/cpu.max", name);
    write_file(file, limit);
    snprintf(file, sizeof file, "%s/cpu.stat", name);
    snprintf(text, sizeof text, "usage_usec %s\nuser_usec 1\nsystem_usec 1\n", usage_usec);
    write_file(file, text);
}

/* --- the machine --- */

static double machine_percent(const char *before, const char *after) {
    struct load first = {.nano = 1};
    struct load second = {.nano = NANO_PER_SECOND};
    assert_true(load_parse_machine(before, &first));
    assert_true(load_parse_machine(after, &second));
    return load_percent(&first, &second);
}

static void all_time_but_idle_and_iowait_is_busy(void **state) {
    (void)state;
    /*  user nice system idle iowait irq softirq steal guest guest_nice */
    assert_true(machine_percent("cpu  100 0 0 100 0 0 0 0 50 0\ncpu0 9\n",
                                "cpu  125 0 0 175 0 0 0 0 75 0\n") == 25);
    assert_true(machine_percent("cpu  1 1 1 1 1 1 1 1 0 0\n", "cpu  2 2 2 6 6 2 2 2 0 0\n") ==
                37.5);
    assert_true(machine_percent("cpu  0 0 0 7\n", "cpu  3 0 0 8\n") == 75);
}

static void malformed_files_give_no_load(void **state) {
    (void)state;
    struct load load;
    assert_false(load_parse_machine("", &load));
    assert_false(load_parse_machine("cpu0 1 2 3 4 5 6 7 8\n", &load));
    assert_false(load_parse_machine("cpu  1 2 3\n", &load));
    assert_true(machine_percent("cpu  1 2 3 4 5 6 7 8\n", "cpu  1 2 3 4 5 6 7 8\n") < 0);
    assert_true(machine_percent("cpu  9 2 3 4 5 6 7 8\n", "cpu  1 2 3 40 5 6 7 8\n") < 0);
}

/* --- control groups --- */

static struct load groups_at(uint64_t nano, const char *groups) {
    struct load load = {.nano = nano};
    load_read_groups(mount, groups, &load);
    return load;
}

/* Half of a processor for 2 seconds is one second of CPU time. */
static void a_group_counts_against_its_limit(void **state) {
    (void)state;
    make_group("a", "50000 100000\n", "1000000");
    const struct load before = groups_at(NANO_PER_SECOND, "1:name=systemd:/x\n0::/a\n");
    make_group("a", "50000 100000\n", "1800000");
    const struct load after = groups_at(UINT64_C(3) * NANO_PER_SECOND, "0::/a\n");
    assert_int_equal(after.group_count, 1);
    assert_in_range((unsigned)(10 * load_percent(&before, &after) + 0.5), 800, 800);
}

static void the_busiest_level_counts(void **state) {
    (void)state;
    make_group("b", "200000 100000\n", "0");
    make_group("b/c", "max 100000\n", "0");
    make_group("b/c/d", "400000 100000\n", "0");
    const struct load before = groups_at(1, "0::/b/c/d\n");
    assert_int_equal(before.group_count, 2);
    make_group("b", "200000 100000\n", "1200000"); /* 60 % of its own limit */
    make_group("b/c/d", "400000 100000\n", "1000000");
    const struct load after = groups_at(1 + NANO_PER_SECOND, "0::/b/c/d\n");
    assert_in_range((unsigned)(load_percent(&before, &after) + 0.5), 60, 60);
}

static void the_machine_may_be_busier(void **state) {
    (void)state;
    make_group("e", "100000 100000\n", "0");
    struct load before = groups_at(1, "0::/e\n");
    make_group("e", "100000 100000\n", "300000");
    struct load after = groups_at(1 + NANO_PER_SECOND, "0::/e\n");
    before.all = 100, before.busy = 0;
    after.all = 200, after.busy = 90;
    assert_true(load_percent(&before, &after) == 90);
    after.busy = 10;
    assert_in_range((unsigned)(load_percent(&before, &after) + 0.5), 30, 30);
}

/* The older version has limits and usage in two controllers, mounted as one or separately. */
static void the_older_version_has_other_names(void **state) {
    (void)state;
    static const char *const lines[] = {"3:cpu:/g\n2:cpuacct:/g\n", "4:cpu,cpuacct:/g\n",
                                        "4:cpuset,cpu:/g\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        make_folder("cpu");
        make_folder("cpu/g");
        make_folder("cpuacct");
        make_folder("cpuacct/g");
        write_file("cpu/g/cpu.cfs_quota_us", "25000\n");
        write_file("cpu/g/cpu.cfs_period_us", "50000\n");
        write_file("cpu/cpu.cfs_quota_us", "-1\n");
        write_file("cpu/cpu.cfs_period_us", "50000\n");
        write_file("cpuacct/g/cpuacct.usage", "0\n");
        const struct load before = groups_at(1, lines[i]);
        assert_int_equal(before.group_count, 1);
        write_file("cpuacct/g/cpuacct.usage", "450000000\n");
        const struct load after = groups_at(1 + NANO_PER_SECOND, lines[i]);
        assert_in_range((unsigned)(load_percent(&before, &after) + 0.5), 90, 90);
    }
}

/* Moves the process to another group, or makes its group again under its name. */
static void another_group_has_no_past(void **state) {
    (void)state;
    make_group("h", "100000 100000\n", "5000000");
    make_group("i", "100000 100000\n", "9000000");
    const struct load before = groups_at(1, "0::/h\n");
    const struct load moved = groups_at(1 + NANO_PER_SECOND, "0::/i\n");
    assert_true(load_percent(&before, &moved) < 0);
    make_group("h", "100000 100000\n", "4000000");
    const struct load anew = groups_at(1 + NANO_PER_SECOND, "0::/h\n");
    assert_true(load_percent(&before, &anew) < 0);
}

static void malformed_limits_are_none(void **state) {
    (void)state;
    static const char *const limits[] = {"max 100000\n", "0 100000\n", "100000 0\n", "many\n",
                                         "\n"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        make_group("j", limits[i], "1");
        assert_int_equal(groups_at(1, "0::/j\n").group_count, 0);
    }
}

/* --- the decision --- */

static struct capture_api api;

static struct shedding at_threshold(uint64_t threshold) {
    api = fake_capture((const char *const[]){NULL});
    struct shedding shedding = shedding_open(&api);
    shedding_limit(&shedding, threshold);
    return shedding;
}

static void one_poll_above_turns_off(void **state) {
    (void)state;
    struct shedding shedding = at_threshold(80);
    assert_false(shedding_follow(&shedding, 80));
    assert_false(shedding.is_on);
    assert_true(shedding_follow(&shedding, 80.1));
    assert_true(shedding.is_on);
    assert_false(shedding_follow(&shedding, 100)); /* no change */
}

/* Goes on once the load was below nine tenths for five checks in a row. */
static void it_goes_on_when_load_has_fallen_for_a_while(void **state) {
    (void)state;
    struct shedding shedding = at_threshold(80);
    (void)shedding_follow(&shedding, 90);
    for (int i = 0; i < 20; i++)
        assert_false(shedding_follow(&shedding, i % 5 == 4 ? 72 : 10));
    for (int i = 0; i < 20; i++)
        assert_false(shedding_follow(&shedding, 75));
    for (int i = 0; i < 4; i++)
        assert_false(shedding_follow(&shedding, 71.9));
    assert_true(shedding.is_on);
    assert_true(shedding_follow(&shedding, 71.9));
    assert_false(shedding.is_on);
    assert_true(shedding_follow(&shedding, 81));
}

static void an_unknown_load_is_not_busy(void **state) {
    (void)state;
    struct shedding shedding = at_threshold(80);
    assert_false(shedding_follow(&shedding, -1));
    (void)shedding_follow(&shedding, 90);
    for (int i = 1; i < 5; i++)
        assert_false(shedding_follow(&shedding, -1)); /* one failed reading means nothing */
    assert_true(shedding_follow(&shedding, -1));
    assert_false(shedding.is_on);
}

static void without_a_threshold_it_goes_on_at_once(void **state) {
    (void)state;
    struct shedding shedding = at_threshold(80);
    (void)shedding_follow(&shedding, 90);
    shedding_limit(&shedding, 80); /* the same limit again */
    assert_true(shedding.is_on);
    const uint64_t first = shedding_nano(&shedding);
    while (shedding_nano(&shedding) <= first)
        ;
    shedding_limit(&shedding, 0);
    assert_false(shedding.is_on);
    assert_true(shedding.next == UINT64_MAX);
    const uint64_t last = shedding_nano(&shedding);
    assert_true(last > first);
    assert_true(shedding_nano(&shedding) == last);
    assert_false(shedding_poll(&shedding));
}

/* Turns profiling off, and on again. */
static void a_profiler_that_is_off_sheds_nothing(void **state) {
    (void)state;
    struct shedding shedding = at_threshold(80);
    shedding_idle(&shedding, true);
    (void)shedding_follow(&shedding, 90);
    assert_true(shedding.is_on);
    assert_false(shedding_sheds(&shedding));
    assert_true(shedding_nano(&shedding) == 0);
    shedding_idle(&shedding, false);
    assert_true(shedding_sheds(&shedding));
    while (shedding_nano(&shedding) == 0)
        ;
    shedding_idle(&shedding, true);
    const uint64_t shed = shedding_nano(&shedding);
    assert_true(shed > 0);
    while (monotonic_nano() <= shedding.since)
        ;
    shedding_limit(&shedding, 0);
    assert_true(shedding_nano(&shedding) == shed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_time_but_idle_and_iowait_is_busy),
        cmocka_unit_test(malformed_files_give_no_load),
        cmocka_unit_test(a_group_counts_against_its_limit),
        cmocka_unit_test(the_busiest_level_counts),
        cmocka_unit_test(the_machine_may_be_busier),
        cmocka_unit_test(the_older_version_has_other_names),
        cmocka_unit_test(another_group_has_no_past),
        cmocka_unit_test(malformed_limits_are_none),
        cmocka_unit_test(one_poll_above_turns_off),
        cmocka_unit_test(it_goes_on_when_load_has_fallen_for_a_while),
        cmocka_unit_test(an_unknown_load_is_not_busy),
        cmocka_unit_test(without_a_threshold_it_goes_on_at_once),
        cmocka_unit_test(a_profiler_that_is_off_sheds_nothing),
    };
    return cmocka_run_group_tests(tests, make_mount, remove_mount);
}
