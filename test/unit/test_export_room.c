/* Tests that under a memory limit an export is made only if there is room for one as large as the
 * last. */
#include "unit.h"

#include "fake_capture.h"

int otelprof_flush_main(const struct capture_api *api); /* the product finds it by name */
uint64_t memory_room(void); /* these replace the functions of the flush side */
uint64_t memory_room_of_program(void);

enum { MANY = 4000, DEPTH = 32, ROOM = 4 << 20 };

static uint64_t frames[MANY][DEPTH];
static struct harvest_sample samples[MANY];
static int harvests;

/* Returns enough memory for any first export, and ROOM from then on. */
uint64_t memory_room(void) {
    return harvests ? ROOM : UINT64_MAX;
}

uint64_t memory_room_of_program(void) {
    return memory_room();
}

static void counted_harvest(harvest_visit *visit, void *arg) {
    harvests++;
    fake_harvest(visit, arg);
}

/* Waits until two harvests were made, or two exports were put off. */
static int wait_for_two(uint64_t deadline) {
    (void)fake_wait(deadline);
    return harvests == 2 || fake.dropped[DROP_MEMORY] == 2 ? REQUEST_ABANDON : REQUEST_TIMEOUT;
}

static int harvests_of(size_t count) {
    void *kept = NULL;
    const char *const environment[] = {"OTEL_PROFILES_EXPORTER=otlp_file",
                                       "OTEL_PROFILER_FILE=/dev/null", "OTEL_PROFILER_SYMBOLS=none",
                                       "OTEL_PROFILE_EXPORT_INTERVAL=1", NULL};
    struct capture_api api = fake_capture(environment);
    for (size_t i = 0; i < MANY; i++) {
        for (size_t k = 0; k < DEPTH; k++)
            frames[i][k] = 0x1000 + i + k;
        samples[i] = (struct harvest_sample){.kind = SAMPLE_CPU,
                                             .thread_name = "",
                                             .frames = frames[i],
                                             .frame_count = DEPTH,
                                             .values = {[MEASURED_NANO] = 1 << 30}};
    }
    harvests = 0;
    fake.samples = samples;
    fake.sample_count = count;
    api.executable = "";
    api.lifecycle.kept = &kept;
    api.harvest.visit = counted_harvest;
    api.wait.until = wait_for_two;
    api.start_nano = monotonic_nano();
    assert_int_equal(otelprof_flush_main(&api), 0);
    return harvests;
}

static void an_export_as_large_as_the_last_has_to_have_room(void **state) {
    (void)state;
    assert_int_equal(harvests_of(10), 2);
    assert_int_equal(harvests_of(MANY), 1);
    assert_int_equal(fake.dropped[DROP_MEMORY], 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_export_as_large_as_the_last_has_to_have_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
