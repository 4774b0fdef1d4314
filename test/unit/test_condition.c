/* Tests OTEL_PROFILER_CONDITION: which texts are conditions, and whether one holds in an
 * interval. */
#include "unit.h"

#include "condition.h"
#include "control/export_condition.h"
#include "fake_capture.h"

#include <sys/mman.h>

static struct condition parsed(const char *text) {
    struct condition condition = {7, 7, 7};
    assert_true(condition_parse(text, &condition));
    return condition;
}

static void bounds_are_joined_by_commas(void **state) {
    (void)state;
    assert_int_equal(parsed("cpu>80%").cpu_percent, 80);
    assert_int_equal(parsed("cpu>80%").rss_kib, 0);
    assert_int_equal(parsed("rss>512MiB").rss_kib, 512 << 10);
    assert_int_equal(parsed("rss>3GiB").rss_kib, 3 << 20);
    assert_int_equal(parsed("rss>100kib , cpu>250%").rss_kib, 100);
    assert_int_equal(parsed("rss>100kib , cpu>250%").cpu_percent, 250);
    assert_int_equal(parsed("rss>4294967295KiB").rss_kib, UINT32_MAX);
    assert_int_equal(parsed("span>1s").span_milli, 1000);
    assert_int_equal(parsed("span>250MS,cpu>80%").span_milli, 250);
    assert_int_equal(parsed("span>250ms,cpu>80%").cpu_percent, 80);
    assert_int_equal(parsed("Span>5min").span_milli, 300000);
    assert_int_equal(parsed("span>4294967295ms").span_milli, UINT32_MAX);
    assert_true(condition_is_set(parsed("span>1ms")));
    assert_false(condition_is_set(parsed("None")));
}

static void any_is_enough_so_of_two_the_lower_counts(void **state) {
    (void)state;
    assert_int_equal(parsed("cpu>80%,cpu>50%,cpu>90%").cpu_percent, 50);
    assert_int_equal(parsed("rss>1GiB,rss>1MiB").rss_kib, 1024);
    assert_int_equal(parsed("span>1min,span>2s,span>3000ms").span_milli, 2000);
}

static void anything_else_is_refused_and_changes_nothing(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        "cpu",
        "cpu>",
        "cpu>80",
        "cpu>%",
        "cpu>0%",
        "cpu>-1%",
        "cpu>1000001%",
        "cpu>80%,",
        ",cpu>80%",
        "cpu<80%",
        "cpu > 80%",
        "cpu>8 0%",
        "cpu>80%%",
        "rss>512",
        "rss>0MiB",
        "rss>512MB",
        "rss>MiB",
        "rss>4194304MiB",
        "rss>4096GiB",
        "span>",
        "span>1",
        "span>s",
        "span>0s",
        "span>-1s",
        "span>1.5s",
        "span>1h",
        "span>1sec",
        "span>1 s",
        "span>1mss",
        "span<1s",
        "span>1s,",
        "span>4294967296ms",
        "span>4294968s",
        "span>71583min",
        "span>1MiB",
        "cpu>1s",
        "rss>1s",
        "none,none",
        "cpu>80%,none",
        "cpu>80%;rss>1MiB",
        "rss>80%",
        "cpu>512MiB",
        "heap>512MiB",
        "rss>4294967296KiB",
        "cpu>00000000000000000000000000000000000000000000080%",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct condition condition = {7, 9, 11};
        assert_false(condition_parse(wrong[i], &condition));
        assert_int_equal(condition.cpu_percent, 7);
        assert_int_equal(condition.rss_kib, 9);
        assert_int_equal(condition.span_milli, 11);
    }
}

static void it_holds_above_a_bound(void **state) {
    (void)state;
    static const struct {
        struct condition bounds;
        struct interval_figures figures;
        bool holds;
    } cases[] = {
        {{0, 0, 0}, {0, 0}, true},
        {{80, 0, 0}, {80.1, 0}, true},
        {{80, 0, 0}, {80, 1e9}, false},
        {{80, 0, 0}, {79.9, 1e9}, false},
        {{0, 512, 0}, {1000, 512}, false},
        {{0, 512, 0}, {0, 513}, true},
        {{80, 512, 0}, {79, 513}, true},
        {{80, 512, 0}, {81, 511}, true},
        {{80, 512, 0}, {79, 511}, false},
        /* an unknown value counts as above its bound, if it has one */
        {{80, 0, 0}, {-1, 0}, true},
        {{0, 512, 0}, {0, -1}, true},
        {{80, 0, 0}, {0, -1}, false},
        {{0, 512, 0}, {-1, 0}, false},
        /* the length of spans is a condition on samples, not on the interval */
        {{0, 0, 1000}, {1e9, 1e9}, false},
        {{80, 0, 1000}, {81, 0}, true},
        {{80, 0, 1000}, {79, 0}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(export_condition_holds(cases[i].bounds, cases[i].figures), cases[i].holds);
}

/* --- the figures of this process --- */

static uint64_t own_nano;

static uint64_t own_cpu(void) {
    return own_nano;
}

static void burn(uint64_t nano) {
    const uint64_t end = clock_nano(CLOCK_PROCESS_CPUTIME_ID) + nano;
    while (clock_nano(CLOCK_PROCESS_CPUTIME_ID) < end)
        ;
}

static struct export_condition opened(struct capture_api *api, const char *variable) {
    const char *const environment[] = {variable, NULL};
    *api = fake_capture(environment);
    api->counters.helper_cpu_nano = own_cpu;
    own_nano = 0;
    return export_condition_open(api);
}

/* Passes the length of the interval, so that the test does not depend on the machine's speed. */
static void cpu_time_counts_from_one_export_to_the_next(void **state) {
    (void)state;
    struct capture_api api;
    struct export_condition condition = opened(&api, "OTEL_PROFILER_CONDITION=cpu>50%");
    burn(50 * NANO_PER_MILLI);
    export_condition_update(&condition, 50 * NANO_PER_MILLI);
    assert_true(condition.holds);
    export_condition_update(&condition, UINT64_C(3600) * NANO_PER_SECOND);
    assert_false(condition.holds);
    burn(50 * NANO_PER_MILLI);
    export_condition_update(&condition, 50 * NANO_PER_MILLI);
    assert_true(condition.holds);
}

/* Stands for an exec of another program in the same process. */
static void cpu_time_from_before_an_exec_is_in_no_interval(void **state) {
    (void)state;
    struct capture_api api;
    (void)opened(&api, "OTEL_PROFILER_CONDITION=cpu>50%");
    burn(50 * NANO_PER_MILLI);
    api.start_cpu_nano = clock_nano(CLOCK_PROCESS_CPUTIME_ID);
    struct export_condition condition = export_condition_open(&api);
    export_condition_update(&condition, 50 * NANO_PER_MILLI);
    assert_false(condition.holds);
    condition = export_condition_open(&api);
    burn(50 * NANO_PER_MILLI);
    export_condition_update(&condition, 50 * NANO_PER_MILLI);
    assert_true(condition.holds);
}

static void the_profilers_own_time_is_not_the_programs(void **state) {
    (void)state;
    struct capture_api api;
    struct export_condition condition = opened(&api, "OTEL_PROFILER_CONDITION=cpu>50%");
    export_condition_update(&condition, 1);
    burn(50 * NANO_PER_MILLI);
    own_nano = UINT64_C(3600) * NANO_PER_SECOND;
    export_condition_update(&condition, 50 * NANO_PER_MILLI);
    assert_false(condition.holds);
}

/* Sets a condition while the program runs: the values at the interval's begin were not read. */
static void an_interval_without_a_known_beginning_is_exported(void **state) {
    (void)state;
    struct capture_api api;
    struct export_condition condition = opened(&api, NULL);
    export_condition_update(&condition, NANO_PER_SECOND);
    assert_true(condition.holds);
    condition.bounds.cpu_percent = 1000000;
    export_condition_update(&condition, NANO_PER_SECOND);
    assert_true(condition.holds);
    export_condition_update(&condition, NANO_PER_SECOND);
    assert_false(condition.holds);
}

static void memory_counts_at_the_end_of_an_interval(void **state) {
    (void)state;
    enum { BYTES = 192 << 20 };
    struct capture_api api;
    struct export_condition condition = opened(&api, "OTEL_PROFILER_CONDITION=rss>128MiB");
    export_condition_update(&condition, NANO_PER_SECOND);
    assert_false(condition.holds);
    char *const memory =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    memset(memory, 1, BYTES);
    export_condition_update(&condition, NANO_PER_SECOND);
    assert_true(condition.holds);
    munmap(memory, BYTES);
    export_condition_update(&condition, NANO_PER_SECOND);
    assert_false(condition.holds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_joined_by_commas),
        cmocka_unit_test(any_is_enough_so_of_two_the_lower_counts),
        cmocka_unit_test(anything_else_is_refused_and_changes_nothing),
        cmocka_unit_test(it_holds_above_a_bound),
        cmocka_unit_test(cpu_time_counts_from_one_export_to_the_next),
        cmocka_unit_test(cpu_time_from_before_an_exec_is_in_no_interval),
        cmocka_unit_test(the_profilers_own_time_is_not_the_programs),
        cmocka_unit_test(an_interval_without_a_known_beginning_is_exported),
        cmocka_unit_test(memory_counts_at_the_end_of_an_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
