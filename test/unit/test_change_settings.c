/* Tests changes of the whole capture side's settings: the samples and the times that the helper
 * then harvests. */
#include "unit.h"

#include "capture.h"
#include "change_settings.h"
#include "clock.h"
#include "record/charged_time.h"

enum { DEPTH = 32, AT = 4096 };

static const struct config config = {.max_stack_depth = DEPTH,
                                     .max_queue_bytes = 1 << 20,
                                     .alloc_interval = 1,
                                     .heap_max_live = 64,
                                     .types = PROFILE_CPU | PROFILE_ALLOC | PROFILE_HEAP,
                                     .cpu_frequency = 100,
                                     .wait_frequency = 49,
                                     .lock_interval = 10000};
static struct log quiet;
static struct capture_api api;

/* Starts capture without the sampling signal, and with a live heap, although this test has no
 * malloc of the profiler's. */
static int start(void **state) {
    (void)state;
    struct config without = config;
    without.types = 0;
    if (!capture_start(&without, &quiet))
        return -1;
    capture.config = &config;
    heap_start(&capture.heap, &config, &quiet, &capture.recorder);
    harvest_fill_api(&api);
    return capture.heap.tracks_live ? 0 : -1;
}

static void set(bool on, unsigned types) {
    struct settings_values values = settings_configured(&config);
    values.on = on;
    values.types = types;
    assert_true(capture_change_settings(&values));
}

static int begin(void **state) {
    (void)state;
    heap_after_fork(&capture.heap);
    set(true, config.types);
    return 0;
}

static struct {
    int of[SAMPLE_KINDS];
    double nano;
    bool moving; /* the program's sigaction() would have waited */
} seen;

static void see(void *arg, const struct harvest_sample *sample) {
    (void)arg;
    seen.of[sample->kind]++;
    seen.moving |= atomic_load(&sampler.moving);
    if (sample->kind == SAMPLE_CPU)
        seen.nano += sample->values[MEASURED_NANO];
}

static void harvest(void) {
    memset(&seen, 0, sizeof seen);
    api.harvest.visit(see, NULL);
}

static void rates_are_those_that_were_set(void **state) {
    (void)state;
    struct settings_values values = settings_configured(&config);
    const uint32_t version = settings_version(&capture.settings);
    values.cpu_frequency = 1000;
    values.alloc_interval = 4096;
    assert_true(capture_change_settings(&values));
    assert_int_not_equal(settings_version(&capture.settings), version);
    assert_int_equal(api.harvest.period(CPU_PERIOD), 1000000);
    assert_int_equal(api.harvest.period(ALLOC_INTERVAL), 4096);
    /* nothing is logged */
    assert_int_equal(capture.heap.logged_interval, 4096);
}

/* Keeps an interval that has grown with the live heap until another interval is set. */
static void a_change_of_something_else_leaves_the_interval(void **state) {
    (void)state;
    atomic_store(&capture.heap.interval, 64);
    set(true, PROFILE_HEAP);
    assert_int_equal(api.harvest.period(ALLOC_INTERVAL), 64);
    heap_set_interval(&capture.heap, config.alloc_interval);
}

/* Forks while another thread of the parent changes the settings: the new ones are not published
 * yet, and the interval has grown with the live heap. */
static void a_child_has_the_settings_that_were_wanted_last(void **state) {
    (void)state;
    atomic_store(&capture.heap.interval, 1 << 20);
    capture.wanted.cpu_frequency = 1000;
    capture.wanted.alloc_interval = 64;
    capture.wanted.shed = true;
    capture_settings_after_fork();
    assert_int_equal(api.harvest.period(CPU_PERIOD), 1000000);
    assert_int_equal(api.harvest.period(ALLOC_INTERVAL), 64);
    assert_int_equal(settings_alloc_interval(&capture.settings), 64);
    assert_int_equal(settings_types(&capture.settings), config.types);
}

/* Forks when sampling has been on and off, and while another thread is in settings_publish(). */
static void a_child_counts_no_time_of_its_parents(void **state) {
    (void)state;
    const uint64_t before = monotonic_nano();
    set(true, PROFILE_ALLOC);
    atomic_store(&capture.settings.sampled[PROFILE_ALLOC_WORD].word, before);
    capture_settings_after_fork();
    const uint64_t after = monotonic_nano();
    const uint64_t hour = 3600 * NANO_PER_SECOND;
    const struct sampled_time on = api.harvest.sampled(PROFILE_ALLOC_WORD, before + hour);
    assert_true(on.begun >= before && on.begun <= after);
    assert_true(on.nano == before + hour - on.begun);
    assert_int_equal(api.harvest.sampled(PROFILE_CPU_WORD, before + hour).nano, 0);
    set(true, config.types);
}

static void one_thread_changes_them_at_a_time(void **state) {
    (void)state;
    const struct settings_values values = settings_configured(&config);
    const uint32_t version = settings_version(&capture.settings);
    atomic_store(&sampler.moving, true);
    assert_false(capture_change_settings(&values));
    atomic_store(&sampler.moving, false);
    assert_int_equal(settings_version(&capture.settings), version);
    assert_true(capture_change_settings(&values));
}

static void where_nothing_is_profiled_nothing_is_changed(void **state) {
    (void)state;
    const struct settings_values values = settings_configured(&config);
    atomic_store(&capture.armed, false);
    assert_false(capture_change_settings(&values));
    atomic_store(&capture.armed, true);
    capture.pid++; /* as in a child of vfork() */
    assert_false(capture_change_settings(&values));
    capture.pid--;
}

static void a_thread_follows_a_version_once(void **state) {
    (void)state;
    set(true, config.types);
    assert_true(capture_follow_settings(profiler_tls.thread));
    assert_false(capture_follow_settings(profiler_tls.thread));
    set(true, config.types);
    assert_true(capture_follow_settings(profiler_tls.thread));
}

/* Frees an object while the type is off: once the type is on again, only the other object is live.
 */
static void live_objects_are_in_no_harvest_while_the_type_is_off(void **state) {
    (void)state;
    struct live_object object;
    for (uintptr_t i = 1; i <= 2; i++)
        heap_sample(&capture.heap, (void *)(i * AT), 100);
    harvest();
    assert_int_equal(seen.of[SAMPLE_LIVE], 2);
    set(true, PROFILE_ALLOC);
    assert_int_equal(api.harvest.types(), PROFILE_ALLOC);
    harvest();
    assert_int_equal(seen.of[SAMPLE_LIVE], 0);
    set(false, config.types);
    assert_int_equal(api.harvest.types(), 0);
    assert_true(heap_forget(&capture.heap, (void *)AT, &object));
    set(true, config.types);
    harvest();
    assert_int_equal(seen.of[SAMPLE_LIVE], 1); /* the object that has not been freed */
}

static void a_type_that_is_off_records_nothing(void **state) {
    (void)state;
    harvest();
    set(true, PROFILE_HEAP);
    heap_sample(&capture.heap, (void *)AT, 100);
    harvest();
    assert_int_equal(seen.of[SAMPLE_ALLOC], 0);
    assert_int_equal(seen.of[SAMPLE_LIVE], 1);
    set(true, PROFILE_ALLOC);
    heap_sample(&capture.heap, (void *)(2 * AT), 100);
    harvest();
    assert_int_equal(seen.of[SAMPLE_ALLOC], 1);
    assert_int_equal(capture.heap.live.count, 1);
    set(true, PROFILE_CPU);
    heap_draw_gap(&capture.heap, profiler_tls.thread);
    assert_true(profiler_tls.thread->beyond > UINT64_MAX / 2);
}

/* Turns CPU time off 1,000 ns after the thread's last sample. Returns the calling thread. */
static struct thread_state *turned_off(void) {
    struct thread_state *const thread = profiler_tls.thread;
    const uint64_t used = thread_cpu_nano();
    thread->last_cpu_nano = charged_nano(thread, used) - 1000;
    atomic_store(&sampler.timers.off, true);
    charge_pause(thread, used);
    sampler.on = true;
    return thread;
}

static void turn_on_again(struct thread_state *thread) {
    sampler.on = false;
    atomic_store(&sampler.timers.off, false);
    atomic_store(&capture.last_harvest, false);
    charge_resume(thread, thread_cpu_nano());
}

/* Records the time until the type was turned off in the next harvest, and no time since then. */
static void the_next_harvest_has_the_time_until_it_was_turned_off(void **state) {
    (void)state;
    struct thread_state *const thread = turned_off();
    harvest();
    assert_int_equal(seen.of[SAMPLE_CPU], 1);
    assert_true(seen.nano == 1000);
    harvest();
    assert_int_equal(seen.of[SAMPLE_CPU], 0);
    atomic_store(&capture.last_harvest, true);
    harvest();
    assert_int_equal(seen.of[SAMPLE_CPU], 0);
    turn_on_again(thread);
    assert_true(charged_nano(thread, thread_cpu_nano()) >= thread->last_cpu_nano);
}

/* Checks that a change of signals does not wait for the visitor, which reads names and merges
 * samples, perhaps for thousands of threads. */
static void no_visit_makes_a_change_of_signals_wait(void **state) {
    (void)state;
    struct thread_state *const thread = turned_off();
    harvest();
    assert_int_equal(seen.of[SAMPLE_CPU], 1);
    assert_false(seen.moving);
    atomic_store(&sampler.wait_timed_out, true); /* the end of each change of the profiler's resets
                                                  * this flag */
    harvest();
    assert_int_equal(seen.of[SAMPLE_CPU], 0);
    assert_true(atomic_exchange(&sampler.wait_timed_out, false));
    turn_on_again(thread);
}

/* A thread that is in its handler, or at its end, records the time itself. */
static void a_thread_that_records_its_time_itself_has_it_once(void **state) {
    (void)state;
    struct thread_state *const thread = turned_off();
    const uint64_t charge = charge_now(thread);
    assert_true(thread_begin_sample(&capture.threads, thread));
    harvest();
    thread_end_sample(thread);
    assert_int_equal(seen.of[SAMPLE_CPU], 0);
    assert_true(charge_now(thread) == charge);
    turn_on_again(thread);
}

static void the_last_harvest_has_no_time_while_it_was_off(void **state) {
    (void)state;
    struct thread_state *const thread = turned_off();
    atomic_store(&capture.last_harvest, true);
    assert_true(sampler_begin_move()); /* another thread changes something */
    harvest();
    sampler_end_move();
    turn_on_again(thread);
    assert_int_equal(seen.of[SAMPLE_CPU], 1);
    assert_true(seen.nano == 1000);
}

/* Changes settings during a pause, as a watched configuration file may. */
static void a_pause_outlasts_other_changes(void **state) {
    (void)state;
    assert_true(capture_pause(true));
    assert_int_equal(settings_types(&capture.settings), 0);
    set(true, PROFILE_HEAP);
    assert_int_equal(settings_types(&capture.settings), 0);
    assert_true(capture_pause(true));
    assert_true(capture_pause(false));
    assert_int_equal(settings_types(&capture.settings), PROFILE_HEAP);
    set(false, PROFILE_HEAP);
    assert_true(capture_pause(false));
    assert_int_equal(settings_types(&capture.settings), 0);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup(function, begin)
    const struct CMUnitTest tests[] = {
        TEST(a_pause_outlasts_other_changes),
        TEST(rates_are_those_that_were_set),
        TEST(a_change_of_something_else_leaves_the_interval),
        TEST(a_child_has_the_settings_that_were_wanted_last),
        TEST(a_child_counts_no_time_of_its_parents),
        TEST(one_thread_changes_them_at_a_time),
        TEST(where_nothing_is_profiled_nothing_is_changed),
        TEST(a_thread_follows_a_version_once),
        TEST(live_objects_are_in_no_harvest_while_the_type_is_off),
        TEST(a_type_that_is_off_records_nothing),
        TEST(the_next_harvest_has_the_time_until_it_was_turned_off),
        TEST(no_visit_makes_a_change_of_signals_wait),
        TEST(a_thread_that_records_its_time_itself_has_it_once),
        TEST(the_last_harvest_has_no_time_while_it_was_off),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
