/* Runs the flush side as a whole, for one cycle, and reads the times in the export. */
#include "unit.h"

#include "fake_capture.h"

#include <unistd.h>

int otelprof_flush_main(const struct capture_api *api); /* the product finds it by name */

static const uint64_t second = NANO_PER_SECOND;

/* Returns the number behind `"name":"`. */
static uint64_t number_in(const char *json, const char *name) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":\"", name);
    const char *const found = strstr(json, wanted);
    assert_non_null(found);
    return strtoull(found + strlen(wanted), NULL, 10);
}

static bool fake_is_suspended_first;

static void suspend_first(const struct capture_api *api) {
    fake.request = REQUEST_SUSPEND;
    assert_int_equal(otelprof_flush_main(api), FLUSH_SUSPENDED);
    assert_non_null(fake.suspended);
    fake.request = REQUEST_STOP;
}

/* Exports once for a process that began `age` ns ago, by the steady clock; `json` receives the
 * export. */
static void run_once(uint64_t start_unix, uint64_t age, char *json, size_t size) {
    static const uint64_t frame = 4096;
    static const struct harvest_sample sample = {.kind = SAMPLE_CPU,
                                                 .thread_name = "",
                                                 .frames = &frame,
                                                 .frame_count = 1,
                                                 .values = {[MEASURED_NANO] = 1 << 30}};
    char path[] = "/tmp/test_flush_main.XXXXXX";
    char file[64];
    void *kept = NULL;
    const int descriptor = mkstemp(path);
    snprintf(file, sizeof file, "OTEL_PROFILER_FILE=%s", path);
    const char *const environment[] = {"OTEL_PROFILES_EXPORTER=otlp_file", file, NULL};
    struct capture_api api = fake_capture(environment);
    fake.samples = &sample;
    fake.sample_count = 1;
    fake.request = REQUEST_STOP;
    api.executable = "";
    api.lifecycle.kept = &kept;
    api.start_unix_nano = start_unix;
    api.start_nano = monotonic_nano() - age;
    if (fake_is_suspended_first)
        suspend_first(&api);
    assert_int_equal(otelprof_flush_main(&api), 0);
    assert_null(fake.suspended);
    const ssize_t length = read(descriptor, json, size - 1);
    assert_true(length > 0);
    json[length] = 0;
    close(descriptor);
    unlink(path);
}

/* Sets the wall clock forwards or back after the start. */
static void the_first_interval_is_what_the_steady_clock_measured(void **state) {
    (void)state;
    static char json[65536];
    const uint64_t now = realtime_nano();
    const uint64_t starts[] = {now - 3 * second, now - 3600 * second, now + 3600 * second};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        run_once(starts[i], 3 * second, json, sizeof json);
        assert_true(number_in(json, "timeUnixNano") == starts[i]);
        const uint64_t length = number_in(json, "durationNano");
        assert_in_range(length, 3 * second, 600 * second);
    }
}

static void what_is_suspended_goes_on_with_its_interval(void **state) {
    (void)state;
    static char json[65536];
    const uint64_t start = realtime_nano() - 3 * second;
    fake_is_suspended_first = true;
    run_once(start, 3 * second, json, sizeof json);
    fake_is_suspended_first = false;
    assert_true(number_in(json, "timeUnixNano") == start);
}

/* Makes `request` to a flush side that does not get the quiesce lock. Returns how many bytes the
 * flush side logs. */
static off_t log_bytes_without_lock(int request) {
    const char *const environment[] = {"OTEL_PROFILES_EXPORTER=otlp", NULL};
    char path[] = "/tmp/test_flush_main.XXXXXX";
    void *kept = NULL;
    const int descriptor = mkstemp(path);
    struct capture_api api = fake_capture(environment);
    log_init(&fake.log, LOG_DEBUG, path);
    fake.lock_closed = true;
    fake.request = request;
    api.executable = "";
    api.lifecycle.kept = &kept;
    assert_int_equal(otelprof_flush_main(&api), -1);
    const off_t size = lseek(descriptor, 0, SEEK_END);
    close(descriptor);
    unlink(path);
    return size;
}

static void an_end_in_the_middle_of_the_start_is_no_lack_of_memory(void **state) {
    (void)state;
    assert_int_equal(log_bytes_without_lock(REQUEST_ABANDON), 0);
    /* otherwise the test would show nothing */
    assert_true(log_bytes_without_lock(REQUEST_TIMEOUT) > 0);
}

/* Waits for the export that the program wants. Without the request it would be due only after an
 * hour. */
static int wait_until_made(uint64_t deadline) {
    assert_true(deadline <= monotonic_nano() + 2 * second || fake.exports_made == 7);
    (void)fake_wait(deadline);
    return fake.exports_made == 7 ? REQUEST_STOP : REQUEST_TIMEOUT;
}

static void an_export_that_the_program_wants_is_made_at_once(void **state) {
    (void)state;
    static const uint64_t frame = 4096;
    static const struct harvest_sample sample = {.kind = SAMPLE_CPU,
                                                 .thread_name = "",
                                                 .frames = &frame,
                                                 .frame_count = 1,
                                                 .values = {[MEASURED_NANO] = 1 << 30}};
    void *kept = NULL;
    const char *const environment[] = {"OTEL_PROFILES_EXPORTER=otlp_file",
                                       "OTEL_PROFILER_FILE=/dev/null",
                                       "OTEL_PROFILE_EXPORT_INTERVAL=3600000", NULL};
    struct capture_api api = fake_capture(environment);
    fake.samples = &sample;
    fake.sample_count = 1;
    fake.exports_wanted = 7;
    api.executable = "";
    api.lifecycle.kept = &kept;
    api.wait.until = wait_until_made;
    api.start_nano = monotonic_nano();
    assert_int_equal(otelprof_flush_main(&api), 0);
    assert_int_equal(fake.exports_made, 7);
    /* the requested export and the last one */
    assert_int_equal(fake.exports_ended[0] + fake.exports_ended[1], 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_export_that_the_program_wants_is_made_at_once),
        cmocka_unit_test(what_is_suspended_goes_on_with_its_interval),
        cmocka_unit_test(an_end_in_the_middle_of_the_start_is_no_lack_of_memory),
        cmocka_unit_test(the_first_interval_is_what_the_steady_clock_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
