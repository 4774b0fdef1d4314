/* Tests settings that change: published settings are within what the process can do, a countdown
 * has one threshold for all its events, sums stay unbiased across a change, and time while CPU time
 * is not sampled is not charged. */
#include "unit.h"

#include "poisson.h"
#include "record/charged_time.h"
#include "record/countdown.h"
#include "settings.h"

static const struct config config = {.types = PROFILE_CPU | PROFILE_HEAP,
                                     .cpu_frequency = 100,
                                     .alloc_interval = 1000,
                                     .wait_frequency = 49,
                                     .lock_interval = 10000,
                                     .max_stack_depth = 64};
static struct settings settings;
static struct thread_state thread;

static int begin(void **state) {
    (void)state;
    memset(&settings, 0, sizeof settings);
    memset(&thread, 0, sizeof thread);
    profiler_tls.thread = &thread;
    return 0;
}

/* --- what is published --- */

static void the_configuration_is_published(void **state) {
    (void)state;
    const struct settings_values values = settings_configured(&config);
    settings_publish(&settings, &values);
    assert_int_equal(settings_types(&settings), PROFILE_CPU | PROFILE_HEAP);
    assert_int_equal(settings_cpu_period_nano(&settings), 10000000);
    assert_int_equal(settings_alloc_interval(&settings), 1000);
    assert_int_equal(settings_max_stack_depth(&settings), 64);
}

static void each_publication_is_a_version(void **state) {
    (void)state;
    const struct settings_values values = settings_configured(&config);
    atomic_store(&settings.version, UINT32_MAX);
    settings_publish(&settings, &values);
    assert_int_equal(settings_version(&settings), 0); /* the version wraps */
    settings_publish(&settings, &values);
    assert_int_equal(settings_version(&settings), 1);
}

static void off_is_no_type(void **state) {
    (void)state;
    struct settings_values values = settings_configured(&config);
    values.on = false;
    settings_publish(&settings, &values);
    assert_int_equal(settings_types(&settings), 0);
    values.on = true;
    settings_publish(&settings, &values);
    assert_int_equal(settings_types(&settings), config.types);
}

/* A type that was not made ready at the start is not turned on later. */
static void nothing_beyond_the_configuration_is_set(void **state) {
    (void)state;
    const struct settings_values most = {.on = true,
                                         .types = ~0u,
                                         .cpu_frequency = UINT64_MAX,
                                         .alloc_interval = UINT64_MAX,
                                         .max_stack_depth = UINT32_MAX};
    const struct settings_values least = {.on = true};
    struct settings_values values = settings_within(&most, &config);
    assert_int_equal(values.types, config.types);
    assert_int_equal(values.cpu_frequency, 4000);
    assert_true(values.alloc_interval == UINT64_MAX);
    assert_int_equal(values.max_stack_depth, 64);
    values = settings_within(&least, &config);
    assert_int_equal(values.types, 0);
    assert_int_equal(values.cpu_frequency, 1);
    assert_int_equal(values.alloc_interval, 1);
    assert_int_equal(values.max_stack_depth, 1);
}

/* --- the countdown --- */

static void a_gap_ends_after_its_bytes(void **state) {
    (void)state;
    countdown_set(&thread, 1000);
    assert_int_equal(profiler_tls.alloc_left, 1000);
    assert_false(countdown_reaches_sample(&thread, 999));
    assert_true(countdown_reaches_sample(&thread, 1));
    countdown_set(&thread, 1000);
    assert_true(countdown_reaches_sample(&thread, UINT64_MAX));
    countdown_set(&thread, 0);
    assert_true(countdown_reaches_sample(&thread, 0));
}

/* Splits the gap into pieces of at most the bound: its end does not move. */
static void a_long_gap_ends_after_its_bytes(void **state) {
    (void)state;
    const uint64_t gap = 10 * COUNTDOWN_MOST + 5;
    const uint64_t size = COUNTDOWN_MOST / 3;
    uint64_t counted = 0;
    countdown_set(&thread, gap);
    for (; counted + size < gap; counted += size) {
        assert_true(profiler_tls.alloc_left <= COUNTDOWN_MOST);
        assert_int_equal(profiler_tls.alloc_left + thread.beyond, gap - counted);
        assert_false(countdown_reaches_sample(&thread, size));
    }
    assert_true(countdown_reaches_sample(&thread, size));
    countdown_set(&thread, gap);
    assert_false(countdown_reaches_sample(&thread, gap - 1));
    assert_true(countdown_reaches_sample(&thread, 1));
}

/* Begins a piece with as many bytes left as before: the count of pieces shows a function that
 * another one has counted the same call. */
static void a_piece_that_begins_is_counted(void **state) {
    (void)state;
    countdown_set(&thread, 10 * COUNTDOWN_MOST);
    const uint32_t before = profiler_tls.countdowns;
    const uint64_t left = profiler_tls.alloc_left;
    assert_false(countdown_reaches_sample(&thread, COUNTDOWN_MOST));
    assert_int_equal(profiler_tls.alloc_left, left);
    assert_int_not_equal(profiler_tls.countdowns, before);
}

/* Sets a gap that never ends: no piece is longer than the bound all the same. */
static void without_a_next_sample_settings_are_still_read(void **state) {
    (void)state;
    countdown_set(&thread, COUNTDOWN_NEVER);
    assert_int_equal(profiler_tls.alloc_left, COUNTDOWN_MOST);
    for (int i = 0; i < 1000; i++) {
        assert_false(countdown_reaches_sample(&thread, UINT64_C(1) << 40));
        assert_int_equal(profiler_tls.alloc_left, COUNTDOWN_MOST);
    }
}

static void several_events_wait_at_one_threshold(void **state) {
    (void)state;
    countdown_set(&thread, 1000);
    countdown_ask(&thread, COUNTDOWN_HELPER);
    countdown_ask(&thread, COUNTDOWN_SETTINGS);
    assert_int_equal(profiler_tls.alloc_left, 0);
    assert_int_equal(thread.events, COUNTDOWN_HELPER | COUNTDOWN_SETTINGS);
    profiler_tls.alloc_left = 990; /* the interrupted malloc stores this */
    countdown_ask(&thread, thread.events);
    assert_int_equal(profiler_tls.alloc_left, 0);
    countdown_set(&thread, 500);
    assert_int_equal(thread.events, 0);
}

/* --- unbiased --- */

enum { TURNS = 400000 };

struct sampling {
    uint64_t random;
    uint64_t interval; /* the present interval */
    uint64_t follows;  /* the interval that the thread draws with */
    uint64_t drawn_with;
    double objects;
};

static void draw(struct sampling *s) {
    s->drawn_with = s->follows = s->interval;
    countdown_set(&thread, poisson_gap(&s->random, s->drawn_with));
}

/* Allocates as hooks/malloc.c and heap.c do. */
static void allocate(struct sampling *s, uint64_t size) {
    if (size < profiler_tls.alloc_left) {
        profiler_tls.alloc_left -= size;
        return;
    }
    if (thread.events)
        draw(s);
    const bool sampled = countdown_reaches_sample(&thread, size);
    if (sampled)
        s->objects += poisson_weight(size, s->drawn_with);
    if (sampled || s->follows != s->interval)
        draw(s);
}

/* Changes the interval at any allocation; the thread follows where its gap ends, or when its next
 * CPU sample requests it. The sum of the weights is the number of allocations all the same, for one
 * random sequence that is always the same. */
static void sums_are_unbiased_across_changes(void **state) {
    (void)state;
    static const uint64_t intervals[] = {1, 500, 3000, 40000, 200};
    struct sampling s = {.random = 4711, .interval = intervals[0]};
    uint64_t chance = 42;
    draw(&s);
    for (int i = 0; i < TURNS; i++) {
        const uint64_t size = 1 + random_next(&chance) % 2000;
        if (random_next(&chance) % 50 == 0)
            s.interval = intervals[random_next(&chance) % 5];
        if (random_next(&chance) % 70 == 0)
            countdown_ask(&thread, COUNTDOWN_SETTINGS);
        allocate(&s, size);
    }
    assert_true(s.objects > 0.98 * TURNS && s.objects < 1.02 * TURNS);
}

/* --- time --- */

static void time_while_off_is_not_charged(void **state) {
    (void)state;
    assert_int_equal(charged_nano(&thread, 1000), 1000);
    charge_pause(&thread, 1500);
    assert_int_equal(charged_nano(&thread, 1500), 1500);
    assert_int_equal(charged_nano(&thread, 9000), 1500);
    charge_resume(&thread, 9000);
    assert_int_equal(charged_nano(&thread, 9000), 1500);
    assert_int_equal(charged_nano(&thread, 9100), 1600);
    charge_pause(&thread, 9200);
    charge_pause(&thread, 9300); /* sampling is paused already */
    charge_resume(&thread, 10000);
    charge_resume(&thread, 10500);
    assert_int_equal(charged_nano(&thread, 10100), 1800);
}

/* Covers threads that begin while sampling is off, and clocks that cannot be read. */
static void charged_time_never_wraps(void **state) {
    (void)state;
    charge_pause(&thread, 0);
    assert_int_equal(charged_nano(&thread, 700), 0);
    charge_resume(&thread, 700);
    assert_int_equal(charged_nano(&thread, 900), 200);
    assert_int_equal(charged_nano(&thread, 0), 0);
    charge_pause(&thread, 600); /* another thread had this id */
    assert_int_equal(charged_nano(&thread, 900), 200);
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup(function, begin)
    const struct CMUnitTest tests[] = {
        TEST(the_configuration_is_published),
        TEST(each_publication_is_a_version),
        TEST(off_is_no_type),
        TEST(nothing_beyond_the_configuration_is_set),
        TEST(a_gap_ends_after_its_bytes),
        TEST(a_long_gap_ends_after_its_bytes),
        TEST(a_piece_that_begins_is_counted),
        TEST(without_a_next_sample_settings_are_still_read),
        TEST(several_events_wait_at_one_threshold),
        TEST(sums_are_unbiased_across_changes),
        TEST(time_while_off_is_not_charged),
        TEST(charged_time_never_wraps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
