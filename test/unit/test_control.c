/* Tests the settings in force: control composes them of the configuration, requests and recordings.
 */
#include "unit.h"

#include "config_kind.h"
#include "control/control.h"
#include "control/settable.h"
#include "fake_capture.h"

static struct capture_api api;
static struct control *control;
static char problem[CONTROL_PROBLEM];

static void open_with(const char *const *environment) {
    control_close(control);
    api = fake_capture(environment);
    fake.log.level = fake.config.log_level;
    control = control_open(&api);
    assert_non_null(control);
    *problem = 0;
}

static int begin(void **state) {
    (void)state;
    static const char *const environment[] = {"OTEL_PROFILER_TYPES=cpu,alloc,heap,mmap", NULL};
    open_with(environment);
    return 0;
}

static int end(void **state) {
    (void)state;
    control_close(control);
    control = NULL;
    return 0;
}

static bool set(const char *text) {
    return control_set(control, text, strlen(text), problem);
}

static uint32_t record(const char *text) {
    return control_record(control, text, strlen(text), problem);
}

static struct settings_values in_force(void) {
    return control_in_force(control);
}

/* --- the list --- */

/* Compares the columns that the list of settables shares with the list of options. */
static void the_list_agrees_with_the_configurations(void **state) {
    (void)state;
    static const struct {
        const char *field;
        const char *name;
        enum config_kind kind;
    } options[] =
        {
#define OPTION(field, kind, name, standard, help) {#field, name, OPTION_##kind},
#include "options.def"
#undef OPTION
        },
      settables[] = {
#define SETTABLE(field, kind, name, finer) {#field, name, OPTION_##kind},
#include "control/settable.def"
#undef SETTABLE
      };
    size_t found = 0;
    for (size_t i = 0; i < sizeof settables / sizeof *settables; i++)
        for (size_t j = 0; j < sizeof options / sizeof *options; j++)
            found += strcmp(settables[i].name, options[j].name) == 0 &&
                     strcmp(settables[i].field, options[j].field) == 0 &&
                     settables[i].kind == options[j].kind;
    assert_int_equal(found, SETTABLES);
}

static char listed[1024];

static void add(void *arg, const char *name, const char *value) {
    (void)arg;
    const size_t length = strlen(listed);
    snprintf(listed + length, sizeof listed - length, "%s=%s\n", name, value);
}

static const char *list(void) {
    *listed = 0;
    control_list(control, add, NULL);
    return listed;
}

static void every_variable_is_listed_as_the_environment_has_it(void **state) {
    (void)state;
    assert_string_equal(list(), "OTEL_PROFILER_START=on\n"
                                "OTEL_PROFILER_TYPES=cpu,alloc,heap,mmap\n"
                                "OTEL_PROFILER_CPU_FREQUENCY=99\n"
                                "OTEL_PROFILER_ALLOC_INTERVAL=524288\n"
                                "OTEL_PROFILER_WAIT_FREQUENCY=49\n"
                                "OTEL_PROFILER_LOCK_INTERVAL=10000\n"
                                "OTEL_PROFILER_MAX_OVERHEAD=1\n"
                                "OTEL_PROFILER_MAX_STACK_DEPTH=128\n"
                                "OTEL_LOG_LEVEL=info\n"
                                "OTEL_PROFILER_CPU_THRESHOLD=0\n"
                                "OTEL_PROFILER_CONDITION=none\n");
}

/* Acts as a live heap that has grown, and its interval with it: a sample of an allocation stands
 * for more bytes. */
static void an_interval_that_has_grown_is_listed_as_it_is(void **state) {
    (void)state;
    assert_true(set("OTEL_PROFILER_ALLOC_INTERVAL=8192"));
    assert_non_null(strstr(list(), "OTEL_PROFILER_ALLOC_INTERVAL=8192\n"));
    fake.grown_interval = 131072;
    assert_non_null(strstr(list(), "OTEL_PROFILER_ALLOC_INTERVAL=131072\n"));
}

/* Checks that otelprof_stop() overrides the settings, and leaves them unchanged for the end of the
 * pause. */
static void a_profiler_that_the_program_stopped_is_listed_as_off(void **state) {
    (void)state;
    assert_non_null(strstr(list(), "OTEL_PROFILER_START=on\n"));
    fake.paused = true;
    assert_non_null(strstr(list(), "OTEL_PROFILER_START=off\n"));
    assert_true(set("OTEL_PROFILER_START=on"));
    assert_non_null(strstr(list(), "OTEL_PROFILER_START=off\n"));
    assert_true(in_force().on);
    fake.paused = false;
    assert_non_null(strstr(list(), "OTEL_PROFILER_START=on\n"));
}

static void percentages_are_written_as_they_are_read(void **state) {
    (void)state;
    static const char *const texts[] = {"1", "0.5", "0.0001", "12.34", "100", "none", "0.0250"};
    static const char *const written[] = {"1", "0.5", "0.0001", "12.34", "100", "none", "0.025"};
    for (int i = 0; i < 7; i++) {
        char text[64];
        char expected[64];
        snprintf(text, sizeof text, "OTEL_PROFILER_MAX_OVERHEAD=%s\n", texts[i]);
        snprintf(expected, sizeof expected, "OTEL_PROFILER_MAX_OVERHEAD=%s\n", written[i]);
        assert_true(set(text));
        assert_non_null(strstr(list(), expected));
    }
}

/* Sends the list back as a request. */
static void a_list_is_a_request_that_changes_nothing(void **state) {
    (void)state;
    const struct settings_values before = in_force();
    char text[sizeof listed];
    assert_true(set("OTEL_PROFILER_START=off\nOTEL_PROFILER_TYPES=heap\n"));
    snprintf(text, sizeof text, "%s", list());
    assert_true(set(text));
    assert_string_equal(list(), text);
    assert_int_equal(before.types, PROFILE_CPU | PROFILE_ALLOC | PROFILE_HEAP | PROFILE_MMAP);
}

/* --- requests --- */

static void a_request_changes_the_named_settings_alone(void **state) {
    (void)state;
    assert_true(set("OTEL_PROFILER_CPU_FREQUENCY=500\n"
                    "# a comment\n\r\n"
                    " OTEL_PROFILER_TYPES = CPU, heap\r\n"
                    "OTEL_PROFILER_ALLOC_INTERVAL=1"));
    assert_int_equal(fake.settings.cpu_frequency, 500);
    assert_int_equal(fake.settings.types, PROFILE_CPU | PROFILE_HEAP);
    assert_int_equal(fake.settings.alloc_interval, 1);
    assert_int_equal(fake.settings.wait_frequency, 49);
    assert_true(fake.settings.on);
    assert_int_equal(in_force().cpu_frequency, 500);
}

/* Parses a line as in a configuration file: test_config_file.c. */
static void a_line_is_parsed_as_in_a_file(void **state) {
    (void)state;
    assert_true(set("; a comment\n \t; one more\r\n\tOTEL_PROFILER_CPU_FREQUENCY\t=\t500\t\r\n"));
    assert_int_equal(in_force().cpu_frequency, 500);
    assert_false(set("OTEL_PROFILER_CPU_FREQUENCY=499\r \n"));
    assert_false(set("\rOTEL_PROFILER_CPU_FREQUENCY=499"));
    assert_int_equal(in_force().cpu_frequency, 500);
}

/* Turns the heap on as well: nothing else follows its height, and an old peak would be exported as
 * today's. */
static void with_the_peak_comes_the_heap(void **state) {
    (void)state;
    static const char *const environment[] = {"OTEL_PROFILER_TYPES=cpu,heap_peak", NULL};
    open_with(environment);
    assert_true(set("OTEL_PROFILER_TYPES=heap_peak"));
    assert_int_equal(in_force().types, PROFILE_HEAP_PEAK | PROFILE_HEAP);
    assert_int_equal(fake.settings.types, PROFILE_HEAP_PEAK | PROFILE_HEAP);
    assert_true(set("OTEL_PROFILER_TYPES=cpu"));
    const uint32_t recording = record("OTEL_PROFILER_TYPES=heap_peak");
    assert_int_equal(in_force().types, PROFILE_CPU | PROFILE_HEAP_PEAK | PROFILE_HEAP);
    control_record_end(control, recording);
    assert_int_equal(in_force().types, PROFILE_CPU);
}

static void requests_add_up_and_an_empty_value_takes_one_back(void **state) {
    (void)state;
    assert_true(set("OTEL_PROFILER_CPU_FREQUENCY=500"));
    assert_true(set("OTEL_PROFILER_START=off"));
    assert_int_equal(in_force().cpu_frequency, 500);
    assert_false(in_force().on);
    assert_true(set("OTEL_PROFILER_CPU_FREQUENCY="));
    assert_int_equal(in_force().cpu_frequency, 99);
    assert_false(in_force().on);
    assert_true(set("OTEL_PROFILER_START=off\nOTEL_PROFILER_START="));
    assert_true(in_force().on);
}

static void a_wrong_line_spoils_a_request(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *problem;
    } wrong[] = {
        {"OTEL_PROFILER_START=off\nOTEL_PROFILER_CPU_FREQUENCY=0",
         "line 2: OTEL_PROFILER_CPU_FREQUENCY=\"0\" is not a frequency from 1 to 4000; nothing "
         "changes"},
        {"\n\nnonsense", "line 3: what stands there is not NAME=value; nothing changes"},
        {"OTEL_SERVICE_NAME=x",
         "line 1: OTEL_SERVICE_NAME cannot be changed while the program runs; nothing changes"},
        {"DATABASE_PASSWORD=secret",
         "line 1: what stands there is no variable that can be changed; nothing changes"},
        {"OTEL_PROFILER_START=true",
         "line 1: OTEL_PROFILER_START=\"true\" is neither on nor off; nothing changes"},
        {"OTEL_PROFILER_TYPES=cpu,lock",
         "line 1: OTEL_PROFILER_TYPES=\"cpu,lock\" has a type that was not in OTEL_PROFILER_TYPES "
         "when the program started; nothing changes"},
        {"OTEL_PROFILER_TYPES=mmap", "line 1: OTEL_PROFILER_TYPES=\"mmap\" has neither alloc nor "
                                     "heap, which mmap adds to; nothing changes"},
        {"OTEL_PROFILER_MAX_STACK_DEPTH=129",
         "line 1: OTEL_PROFILER_MAX_STACK_DEPTH=\"129\" is more than when the program started; "
         "nothing changes"},
        {"OTEL_LOG_LEVEL=loud", "line 1: OTEL_LOG_LEVEL=\"loud\" is not one of none, error, warn, "
                                "info, debug; nothing changes"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(set(wrong[i].text));
        assert_string_equal(problem, wrong[i].problem);
        assert_int_equal(record(wrong[i].text), 0);
        assert_string_equal(problem, wrong[i].problem);
        assert_true(in_force().on);
    }
    assert_false(control_set(control, "OTEL_PROFILER_START=o\0f", 23, problem));
}

/* Checks lines as for a HEAD request, which may carry settings as GET does. */
static void lines_are_checked_without_a_change(void **state) {
    static const char right[] = "OTEL_PROFILER_CPU_FREQUENCY=999\nOTEL_PROFILER_TYPES=heap";
    static const char wrong[] = "OTEL_PROFILER_CPU_FREQUENCY=999\nOTEL_NOTHING=1";
    const unsigned before = in_force().types;
    (void)state;
    assert_true(control_check(control, right, sizeof right - 1, problem));
    assert_false(control_check(control, wrong, sizeof wrong - 1, problem));
    assert_non_null(strstr(problem, "line 2"));
    assert_int_equal(in_force().cpu_frequency, 99);
    assert_int_equal(in_force().types, before);
    /* a check does not count as a recording, of which there may be 16 */
    for (int i = 0; i < 20; i++)
        assert_true(control_check(control, right, sizeof right - 1, problem));
    assert_int_not_equal(record(right), 0);
}

/* Reports the problem in a whole sentence, whatever is in the line. */
static void a_long_line_is_reported_shortened(void **state) {
    (void)state;
    static char text[70000];
    memset(text, 'x', sizeof text);
    assert_false(control_set(control, text, sizeof text, problem));
    text[30] = '=';
    assert_false(control_set(control, text, sizeof text, problem));
    memcpy(text, "OTEL_PROFILER_TYPES=", 20);
    assert_false(control_set(control, text, sizeof text, problem));
    assert_non_null(strstr(problem, "sched_delay, lock, threads, mmap; nothing changes"));
}

static void all_types_are_those_of_the_start(void **state) {
    (void)state;
    assert_true(set("OTEL_PROFILER_TYPES=cpu"));
    assert_true(set("OTEL_PROFILER_TYPES=all"));
    assert_int_equal(in_force().types, fake.config.types);
}

static void the_log_level_is_one_of_them(void **state) {
    (void)state;
    assert_true(set("OTEL_LOG_LEVEL=debug"));
    assert_int_equal(fake.log_level, LOG_DEBUG);
}

static void a_condition_is_listed_as_one_writes_it(void **state) {
    (void)state;
    static const char *const as_listed[][2] = {{"cpu>80%", "cpu>80%"},
                                               {"RSS>512mib", "rss>512MiB"},
                                               {"rss>2048MiB , CPU>150%", "cpu>150%,rss>2GiB"},
                                               {"rss>1025KiB", "rss>1025KiB"},
                                               {"rss>4194303MiB", "rss>4194303MiB"},
                                               {"cpu>90%,cpu>40%,cpu>70%", "cpu>40%"},
                                               {"SPAN>1500ms", "span>1500ms"},
                                               {"span>2000ms", "span>2s"},
                                               {"span>90s,rss>1GiB", "rss>1GiB,span>90s"},
                                               {"span>120s,cpu>1%", "cpu>1%,span>2min"},
                                               {"span>3600000ms", "span>60min"},
                                               {"none", "none"}};
    for (size_t i = 0; i < sizeof as_listed / sizeof *as_listed; i++) {
        char line[128];
        snprintf(line, sizeof line, "OTEL_PROFILER_CONDITION=%s", as_listed[i][0]);
        assert_true(set(line));
        snprintf(line, sizeof line, "OTEL_PROFILER_CONDITION=%s\n", as_listed[i][1]);
        assert_non_null(strstr(list(), line));
    }
}

/* --- recordings --- */

static void a_recording_raises_rates_for_its_time(void **state) {
    (void)state;
    assert_true(set("OTEL_PROFILER_TYPES=cpu\nOTEL_PROFILER_ALLOC_INTERVAL=4096"));
    const uint32_t number = record("OTEL_PROFILER_CPU_FREQUENCY=999\n"
                                   "OTEL_PROFILER_WAIT_FREQUENCY=10\n"
                                   "OTEL_PROFILER_ALLOC_INTERVAL=1000000\n"
                                   "OTEL_PROFILER_TYPES=heap\nOTEL_PROFILER_START=off");
    assert_int_not_equal(number, 0);
    assert_int_equal(in_force().cpu_frequency, 999);
    assert_int_equal(in_force().wait_frequency, 49);
    assert_int_equal(in_force().alloc_interval, 4096);
    assert_int_equal(in_force().types, PROFILE_CPU | PROFILE_HEAP);
    assert_true(in_force().on);
    control_record_end(control, number);
    assert_int_equal(in_force().cpu_frequency, 99);
    assert_int_equal(in_force().types, PROFILE_CPU);
    control_record_end(control, number);
    control_record_end(control, 0);
}

static void a_recording_changes_neither_threshold_nor_condition(void **state) {
    (void)state;
    assert_true(set("OTEL_PROFILER_CPU_THRESHOLD=90\nOTEL_PROFILER_CONDITION=cpu>80%"));
    assert_int_not_equal(record("OTEL_PROFILER_CPU_THRESHOLD=1\nOTEL_PROFILER_CONDITION=none"), 0);
    assert_non_null(strstr(list(), "THRESHOLD=90\nOTEL_PROFILER_CONDITION=cpu>80%\n"));
}

static void of_several_the_finest_holds(void **state) {
    (void)state;
    const uint32_t first = record("OTEL_PROFILER_CPU_FREQUENCY=999");
    const uint32_t second = record("OTEL_PROFILER_CPU_FREQUENCY=500");
    assert_int_not_equal(first, second);
    assert_int_equal(in_force().cpu_frequency, 999);
    control_record_end(control, first);
    assert_int_equal(in_force().cpu_frequency, 500);
    assert_true(set("OTEL_PROFILER_CPU_FREQUENCY=700")); /* set by a request beside the recording */
    assert_int_equal(in_force().cpu_frequency, 700);
    control_record_end(control, second);
    assert_int_equal(in_force().cpu_frequency, 700);
}

/* Leaves a type off that the recording does not request. */
static void a_recording_turns_on_its_own_type_alone(void **state) {
    (void)state;
    static const char *const environment[] = {"OTEL_PROFILER_START=off", NULL};
    open_with(environment);
    assert_false(in_force().on);
    const uint32_t rates = record("OTEL_PROFILER_CPU_FREQUENCY=999");
    assert_false(in_force().on);
    const uint32_t cpu = record("OTEL_PROFILER_START=on\nOTEL_PROFILER_TYPES=cpu");
    assert_true(in_force().on);
    assert_int_equal(in_force().types, PROFILE_CPU);
    assert_int_equal(in_force().cpu_frequency, 999);
    const uint32_t all = record("OTEL_PROFILER_START=on");
    assert_int_equal(in_force().types, PROFILE_CPU | PROFILE_ALLOC | PROFILE_HEAP);
    control_record_end(control, all);
    control_record_end(control, cpu);
    assert_false(in_force().on);
    assert_int_equal(in_force().cpu_frequency, 999);
    control_record_end(control, rates);
    assert_string_equal(list() + strlen("OTEL_PROFILER_START="), strchr(list(), '=') + 1);
}

static void there_are_sixteen_recordings_at_most(void **state) {
    (void)state;
    uint32_t numbers[16];
    for (int i = 0; i < 16; i++)
        assert_int_not_equal(numbers[i] = record("OTEL_PROFILER_START=on"), 0);
    assert_int_equal(record("OTEL_PROFILER_START=on"), 0);
    assert_string_equal(problem,
                        "16 recordings are under way, and more are not possible; nothing changes");
    control_record_end(control, numbers[7]);
    assert_int_not_equal(record("OTEL_PROFILER_START=on"), 0);
}

/* --- capture --- */

static void unchanged_settings_are_not_passed_to_capture(void **state) {
    (void)state;
    control_poll(control, NANO_PER_SECOND);
    assert_int_equal(fake.settings.cpu_frequency, 0);
    assert_true(control_next_poll(control) == UINT64_MAX);
    assert_true(set("OTEL_PROFILER_CPU_FREQUENCY=99")); /* the value that it has already */
    assert_int_equal(fake.settings.cpu_frequency, 0);
}

static void wait_until(uint64_t moment) {
    while (monotonic_nano() < moment)
        ;
}

/* Wakes up for a threshold only where one is set. */
static void a_threshold_is_polled_once_a_second(void **state) {
    (void)state;
    assert_true(control_next_poll(control) == UINT64_MAX);
    const uint64_t before = monotonic_nano();
    assert_true(set("OTEL_PROFILER_CPU_THRESHOLD=100"));
    assert_in_range(control_next_poll(control), before + NANO_PER_SECOND,
                    monotonic_nano() + NANO_PER_SECOND);
    assert_false(control_sheds(control)); /* a threshold above 100 % is never reached */
    assert_true(set("OTEL_PROFILER_CPU_THRESHOLD="));
    assert_true(control_next_poll(control) == UINT64_MAX);
}

/* Checks the reason that the reply to a change gives if sampling stays off against the request. */
static void what_keeps_sampling_off_is_told(void **state) {
    (void)state;
    assert_true(set("OTEL_PROFILER_START=off\nOTEL_PROFILER_MAX_OVERHEAD=none"));
    assert_null(control_why_off(control)); /* as it was asked for */
    fake.settings_refused = 1;
    assert_true(set("OTEL_PROFILER_START=on"));
    assert_false(in_force().on);
    assert_non_null(strstr(control_why_off(control), "is tried again within a second"));
    wait_until(control_next_poll(control));
    control_poll_again(control);
    assert_true(in_force().on);
    assert_null(control_why_off(control));
    fake.paused = true;
    assert_non_null(strstr(control_why_off(control), "otelprof_stop()"));
}

/* Has capture refuse the settings twice: they are in force only once capture has taken them. */
static void settings_that_capture_refuses_are_tried_again(void **state) {
    (void)state;
    assert_true(set("OTEL_PROFILER_MAX_OVERHEAD=none")); /* with a limit, its check would be due a
                                                          * second later */
    fake.settings_refused = 2;
    const uint64_t now = monotonic_nano();
    assert_true(set("OTEL_PROFILER_CPU_FREQUENCY=500"));
    assert_int_equal(in_force().cpu_frequency, 99);
    const uint64_t due = control_next_poll(control);
    assert_in_range(due, now + 50 * NANO_PER_MILLI, monotonic_nano() + 50 * NANO_PER_MILLI);
    control_poll_again(control); /* too early */
    assert_int_equal(fake.settings_refused, 1);
    wait_until(due);
    control_poll_again(control);
    assert_int_equal(fake.settings_refused, 0);
    const uint64_t next = control_next_poll(control);
    assert_true(next >= due + 100 * NANO_PER_MILLI); /* the delay grows each time */
    wait_until(next);
    control_poll(control, NANO_PER_SECOND); /* at an export, too */
    assert_int_equal(in_force().cpu_frequency, 500);
    assert_true(control_next_poll(control) == UINT64_MAX);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_list_agrees_with_the_configurations),
        TEST(every_variable_is_listed_as_the_environment_has_it),
        TEST(an_interval_that_has_grown_is_listed_as_it_is),
        TEST(a_profiler_that_the_program_stopped_is_listed_as_off),
        TEST(percentages_are_written_as_they_are_read),
        TEST(a_list_is_a_request_that_changes_nothing),
        TEST(a_request_changes_the_named_settings_alone),
        TEST(a_line_is_parsed_as_in_a_file),
        TEST(with_the_peak_comes_the_heap),
        TEST(requests_add_up_and_an_empty_value_takes_one_back),
        TEST(a_wrong_line_spoils_a_request),
        TEST(lines_are_checked_without_a_change),
        TEST(a_long_line_is_reported_shortened),
        TEST(all_types_are_those_of_the_start),
        TEST(the_log_level_is_one_of_them),
        TEST(a_recording_raises_rates_for_its_time),
        TEST(a_condition_is_listed_as_one_writes_it),
        TEST(a_recording_changes_neither_threshold_nor_condition),
        TEST(a_threshold_is_polled_once_a_second),
        TEST(of_several_the_finest_holds),
        TEST(a_recording_turns_on_its_own_type_alone),
        TEST(there_are_sixteen_recordings_at_most),
        TEST(unchanged_settings_are_not_passed_to_capture),
        TEST(what_keeps_sampling_off_is_told),
        TEST(settings_that_capture_refuses_are_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
