/* Tests the harvest: it hands over all that threads recorded and all that is live, under the right
 * names, and counts what was lost. The test provides the clocks and the memory. */
#include "unit.h"

#include "capture.h"
#include "fake_syscall.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    DEPTH = 32,
    MOST_SEEN = 16,
    ENDED = 1 << 24, /* beyond the ids that the kernel gives (PID_MAX_LIMIT) */
    NAMES = 1024,    /* ids at this distance share one place in harvest.c */
    SECONDS = 1000000000,
};

/* --- the machine --- */

static struct {
    uint64_t now_nano; /* time of the coarse clock */
    uint64_t cpu_nano; /* CPU time of every thread whose clock is read by its id */
    bool has_no_memory;
} machine;

static long answer_clock(clockid_t clock, struct timespec *time) {
    const uint64_t nano = clock < 0 ? machine.cpu_nano : machine.now_nano;
    *time = (struct timespec){(time_t)(nano / SECONDS), (long)(nano % SECONDS)};
    return 0;
}

static long fake_syscall(long number, const long a[6]) {
    if (number == SYS_clock_gettime && ((clockid_t)a[0] < 0 || a[0] == CLOCK_MONOTONIC_COARSE))
        return answer_clock((clockid_t)a[0], (struct timespec *)a[1]);
    if (number == SYS_mmap && machine.has_no_memory)
        return refuse_syscall(ENOMEM);
    return real_syscall(number, a);
}

/* --- a process of one thread --- */

static char log_path[] = "/tmp/otelprof-harvest-XXXXXX";
static struct config config = {.max_stack_depth = DEPTH,
                               .max_queue_bytes = 1 << 20,
                               .alloc_interval = 1,
                               .heap_max_live = 64,
                               .types = PROFILE_ALLOC | PROFILE_HEAP,
                               .cpu_frequency = 100,
                               .wait_frequency = 49,
                               .lock_interval = 10000};
static struct log debug_log;
static struct capture_api api;
static struct thread_state *thread;

static void *start_routine(void *argument) {
    return argument;
}

static struct thread_state *begin_thread(uint32_t tid) {
    struct thread_state *const begun = thread_table_take(&capture.threads);
    assert_non_null(begun);
    memset(&begun->dropped, 0, sizeof begun->dropped);
    atomic_store(&begun->tid, tid);
    begun->random = 1;
    begun->start_routine = start_routine;
    return begun;
}

static int start(void **state) {
    (void)state;
    static const struct config nothing = {.max_stack_depth = DEPTH,
                                          .max_queue_bytes = 1 << 20,
                                          .cpu_frequency = 100,
                                          .wait_frequency = 49,
                                          .lock_interval = 10000};
    const int file = mkstemp(log_path);
    if (file < 0 || close(file) != 0)
        return -1;
    log_init(&debug_log, LOG_DEBUG, log_path);
    if (!capture_start(&nothing, &debug_log))
        return -1;
    capture.config = &config;
    const struct settings_values configured = settings_configured(&config);
    settings_publish(&capture.settings, &configured);
    heap_start(&capture.heap, &config, &debug_log, &capture.recorder);
    harvest_fill_api(&api);
    return capture.heap.tracks_live ? 0 : -1;
}

static int finish(void **state) {
    (void)state;
    return unlink(log_path);
}

static int begin(void **state) {
    (void)state;
    memset(&machine, 0, sizeof machine);
    memset(&capture.recorder.dropped, 0, sizeof capture.recorder.dropped);
    memset(&capture.logged_dropped, 0, sizeof capture.logged_dropped);
    atomic_store(&capture.last_harvest, false);
    sampler.on = false;
    config.heap_age = false;
    thread_table_reset(&capture.threads);
    heap_after_fork(&capture.heap);
    capture.heap.start_nano = 0;
    thread = begin_thread((uint32_t)gettid());
    thread->stack = (struct stack_range){4096, getauxval(AT_EXECFN) & ~7ul};
    profiler_tls.thread = thread;
    return truncate(log_path, 0);
}

/* --- what is visited --- */

static struct {
    int count;
    struct {
        struct harvest_sample sample; /* its pointers are not valid any more */
        char name[THREAD_NAME_BYTES];
        uint64_t leaf;
        char span[SPAN_ID_BYTES];
    } of[MOST_SEEN];
} seen;

static void see(void *arg, const struct harvest_sample *sample) {
    (void)arg;
    assert_true(seen.count < MOST_SEEN);
    seen.of[seen.count].sample = *sample;
    if (sample->context)
        memcpy(seen.of[seen.count].span, sample->context->span_id, SPAN_ID_BYTES);
    seen.of[seen.count].leaf = sample->frame_count ? sample->frames[0] : 0;
    snprintf(seen.of[seen.count++].name, THREAD_NAME_BYTES, "%s", sample->thread_name);
}

static int harvest(void) {
    memset(&seen, 0, sizeof seen);
    api.harvest.visit(see, NULL);
    return seen.count;
}

static const struct harvest_sample *only(enum sample_kind kind) {
    const struct harvest_sample *found = NULL;
    for (int i = 0; i < seen.count; i++) {
        if (seen.of[i].sample.kind != kind)
            continue;
        assert_null(found);
        found = &seen.of[i].sample;
    }
    return found;
}

static const char *name_seen_of(uint32_t tid) {
    for (int i = 0; i < seen.count; i++)
        if (seen.of[i].sample.tid == tid)
            return seen.of[i].name;
    return NULL;
}

static void record(struct thread_state *of, uint32_t tid, uint64_t nano) {
    const uint64_t frames[] = {0x1000, 0x2000};
    static const struct sample_context context = {.span_id = "span 5,"};
    const struct sample sample = {.kind = SAMPLE_CPU,
                                  .flags = SAMPLE_FLAG_TRUNCATED,
                                  .tid = tid,
                                  .interval = 3,
                                  .context = &context,
                                  .frames = frames,
                                  .frame_count = 2,
                                  .values = {[MEASURED_NANO] = (double)nano}};
    assert_true(thread_record(&capture.threads, of, &sample));
}

static void record_name_of(struct thread_state *of, uint32_t tid, const char *name) {
    uint64_t words[THREAD_NAME_WORDS] = {0};
    memcpy(words, name, strlen(name));
    const struct sample sample = {
        .kind = RECORD_THREAD_NAME, .tid = tid, .frames = words, .frame_count = THREAD_NAME_WORDS};
    assert_true(thread_record(&capture.threads, of, &sample));
}

static void a_sample_is_handed_over_as_it_was_recorded(void **state) {
    (void)state;
    record(thread, (uint32_t)gettid(), 7);
    assert_int_equal(harvest(), 1);
    const struct harvest_sample *const sample = &seen.of[0].sample;
    assert_int_equal(sample->kind, SAMPLE_CPU);
    assert_int_equal(sample->flags, SAMPLE_FLAG_TRUNCATED);
    assert_int_equal(sample->tid, gettid());
    assert_int_equal(sample->interval, 3);
    assert_string_equal(seen.of[0].span, "span 5,");
    assert_int_equal(sample->frame_count, 2);
    assert_int_equal(seen.of[0].leaf, 0x1000);
    assert_true(sample->values[MEASURED_NANO] == 7);
    assert_int_equal(harvest(), 0);
}

/* --- names of threads --- */

static void a_thread_has_the_name_of_the_moment(void **state) {
    (void)state;
    prctl(PR_SET_NAME, "before");
    record(thread, (uint32_t)gettid(), 1);
    harvest();
    assert_string_equal(name_seen_of((uint32_t)gettid()), "before");
    prctl(PR_SET_NAME, "after");
    record(thread, (uint32_t)gettid(), 1);
    harvest();
    assert_string_equal(name_seen_of((uint32_t)gettid()), "after");
}

static void an_ended_thread_has_the_name_that_it_left(void **state) {
    (void)state;
    record(thread, ENDED, 1);
    record_name_of(thread, ENDED, "worker");
    record(thread, 0, 1); /* threads are not distinguished any more */
    assert_int_equal(harvest(), 2);
    assert_string_equal(name_seen_of(ENDED), "worker");
    assert_string_equal(name_seen_of(0), "");
}

static void no_thread_has_the_name_of_another(void **state) {
    (void)state;
    const uint32_t own = (uint32_t)gettid();
    prctl(PR_SET_NAME, "own");
    record_name_of(thread, own + NAMES, "another");
    record(thread, own, 1);
    record(thread, own + NAMES, 1);
    assert_int_equal(harvest(), 2);
    assert_string_equal(name_seen_of(own), "own");
    assert_string_not_equal(name_seen_of(own + NAMES), "own");
}

static void without_memory_for_names_samples_come_without(void **state) {
    (void)state;
    record(thread, (uint32_t)gettid(), 7);
    machine.has_no_memory = true;
    assert_int_equal(harvest(), 1);
    assert_string_equal(seen.of[0].name, "");
    assert_true(seen.of[0].sample.values[MEASURED_NANO] == 7);
}

/* --- threads that have ended --- */

static void a_harvest_frees_the_slots_of_ended_threads(void **state) {
    (void)state;
    struct thread_state *const ended = begin_thread(ENDED);
    record(ended, ENDED, 7);
    thread_table_retire(&capture.threads, ended);
    assert_int_equal(harvest(), 1);
    assert_int_equal(seen.of[0].sample.tid, ENDED);
    assert_ptr_equal(thread_table_take(&capture.threads), ended);
}

/* --- the live heap --- */

static void live_objects_are_in_each_harvest(void **state) {
    (void)state;
    struct live_object object;
    heap_sample(&capture.heap, (void *)4096, 100);
    assert_int_equal(harvest(), 2);
    assert_true(only(SAMPLE_ALLOC)->values[MEASURED_BYTES] > 99);
    assert_int_equal(harvest(), 1);
    const struct harvest_sample *const live = only(SAMPLE_LIVE);
    assert_true(live->values[MEASURED_OBJECTS] > 0.99 && live->values[MEASURED_OBJECTS] < 1.01);
    assert_true(live->values[MEASURED_BYTES] > 99 && live->values[MEASURED_BYTES] < 101);
    assert_true(live->frame_count >= 2);
    assert_int_equal(live->age, AGE_UNKNOWN);
    assert_true(heap_forget(&capture.heap, (void *)4096, &object));
    assert_int_equal(harvest(), 0);
}

static void a_live_object_grows_old(void **state) {
    (void)state;
    static const struct {
        uint64_t seconds;
        enum heap_age age;
    } ages[] = {{0, AGE_10_SECONDS}, {9, AGE_10_SECONDS},  {10, AGE_1_MINUTE},
                {59, AGE_1_MINUTE},  {60, AGE_10_MINUTES}, {599, AGE_10_MINUTES},
                {600, AGE_1_HOUR},   {3599, AGE_1_HOUR},   {3600, AGE_1_DAY},
                {86399, AGE_1_DAY},  {86400, AGE_OLDER},   {8640000, AGE_OLDER}};
    config.heap_age = true;
    machine.now_nano = 100ull * SECONDS;
    heap_sample(&capture.heap, (void *)4096, 100);
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        machine.now_nano = (100 + ages[i].seconds) * SECONDS;
        harvest();
        assert_int_equal(only(SAMPLE_LIVE)->age, ages[i].age);
    }
}

/* --- what no sample covers --- */

static void the_last_harvest_has_the_time_that_no_sample_covers(void **state) {
    (void)state;
    sampler.on = true;
    machine.cpu_nano = 5000;
    thread->last_cpu_nano = 3000;
    prctl(PR_SET_NAME, "busy");
    assert_int_equal(harvest(), 0);
    atomic_store(&capture.last_harvest, true);
    assert_int_equal(harvest(), 1);
    const struct harvest_sample *const rest = only(SAMPLE_CPU);
    assert_true(rest->values[MEASURED_NANO] == 2000);
    assert_int_equal(rest->flags, SAMPLE_FLAG_UNSAMPLED);
    assert_int_equal(rest->tid, gettid());
    assert_int_equal(seen.of[0].leaf, (uintptr_t)start_routine);
    assert_string_equal(seen.of[0].name, "busy");
    thread->start_routine = NULL; /* like the main thread */
    harvest();
    assert_int_equal(seen.of[0].leaf, getauxval(AT_ENTRY));
}

static void no_time_is_accounted_for_twice(void **state) {
    (void)state;
    struct thread_state *const ended = begin_thread(ENDED);
    atomic_store(&capture.last_harvest, true);
    machine.cpu_nano = 5000;
    thread->last_cpu_nano = 5000;
    atomic_store(&ended->retired, true); /* the thread has recorded its own remainder */
    sampler.on = true;
    assert_int_equal(harvest(), 0);
    thread->last_cpu_nano = 0;
    sampler.on = false; /* CPU time is not profiled */
    assert_int_equal(harvest(), 0);
}

/* --- what was lost --- */

static int times_logged(const char *line) {
    char text[8192];
    int count = 0;
    FILE *const file = fopen(log_path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    for (const char *at = text; (at = strstr(at, line)); at++)
        count++;
    return count;
}

static uint64_t dropped(enum drop_reason reason) {
    uint64_t counts[DROP_REASON_COUNT];
    api.counters.dropped(counts);
    return counts[reason];
}

static void drops_of_all_places_are_added_up(void **state) {
    (void)state;
    thread_count_drop(thread, DROP_BUSY);
    thread_count_drops(begin_thread(ENDED), DROP_BUSY, 2);
    record_drop(&capture.recorder, DROP_BUSY);
    api.counters.count_drop(DROP_BUSY, 10);
    assert_int_equal(dropped(DROP_BUSY), 14);
    assert_int_equal(dropped(DROP_OVERRUN), 0);
    harvest();
    assert_int_equal(dropped(DROP_BUSY), 14); /* a harvest adds nothing and takes nothing away */
}

static void a_count_that_has_grown_is_logged_once(void **state) {
    (void)state;
    thread_count_drops(thread, DROP_BUSY, 3);
    harvest();
    harvest();
    assert_int_equal(times_logged("busy: 3 so far"), 1);
    assert_int_equal(times_logged("so far"), 1);
    thread_count_drop(thread, DROP_BUSY);
    harvest();
    assert_int_equal(times_logged("busy: 4 so far"), 1);
    assert_int_equal(times_logged("so far"), 2);
}

static pthread_barrier_t all_run, all_may_end;

static void *run(void *name) {
    prctl(PR_SET_NAME, name);
    pthread_barrier_wait(&all_run);
    pthread_barrier_wait(&all_may_end);
    return NULL;
}

static void an_unregistered_thread_is_counted_once(void **state) {
    (void)state;
    /* profiler threads are not the program's, whether exports arrive or not */
    static const char *const names[] = {"unseen", "otelprof", "otelprof unsent"};
    enum { OTHERS = sizeof names / sizeof *names };
    pthread_t others[OTHERS];
    pthread_barrier_init(&all_run, NULL, OTHERS + 1);
    pthread_barrier_init(&all_may_end, NULL, OTHERS + 1);
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(pthread_create(&others[i], NULL, run, (void *)(uintptr_t)names[i]), 0);
    pthread_barrier_wait(&all_run);
    machine.cpu_nano = 9999999;
    harvest();
    assert_int_equal(dropped(DROP_UNKNOWN_THREAD), 0); /* the thread has hardly run */
    machine.cpu_nano = 10000000;
    harvest();
    harvest();
    assert_int_equal(dropped(DROP_UNKNOWN_THREAD), 1); /* no profiler thread is counted */
    pthread_barrier_wait(&all_may_end);
    for (int i = 0; i < OTHERS; i++)
        pthread_join(others[i], NULL);
    harvest();
    assert_int_equal(dropped(DROP_UNKNOWN_THREAD), 1);
}

/* --- modules --- */

/* Names libraries of glibc that no other object loads. */
static const char library_name[] = "libanl.so.1";
static const char other_library_name[] = "libutil.so.1";

static const struct harvest_module *module_seen(const char *name) {
    const struct harvest_module *modules;
    const size_t count = api.harvest.modules(&modules);
    for (size_t i = 0; i < count; i++)
        if (strstr(modules[i].path, name))
            return &modules[i];
    return NULL;
}

static void modules_are_those_of_the_last_harvest(void **state) {
    (void)state;
    harvest();
    assert_non_null(module_seen(program_invocation_short_name));
    assert_null(module_seen(library_name));
    void *const library = dlopen(library_name, RTLD_NOW);
    assert_non_null(library);
    assert_null(module_seen(library_name));
    harvest();
    assert_non_null(module_seen(library_name));
    assert_false(module_seen(library_name)->unloaded);
    const struct harvest_module *const loaded = module_seen(library_name);
    dlclose(library);
    (void)modules_refresh(&capture.modules); /* our dlclose() does so */
    /* the module is kept until the next harvest */
    assert_non_null(strstr(loaded->path, library_name));
}

static void an_unloaded_library_keeps_its_names_and_loses_its_rules(void **state) {
    (void)state;
    void *const library = dlopen(other_library_name, RTLD_NOW);
    assert_non_null(library);
    harvest();
    const uint64_t recorded = modules_interval(&capture.modules);
    const uint64_t generation = rule_cache_generation(&capture.rules);
    harvest();
    assert_int_equal(rule_cache_generation(&capture.rules), generation);
    dlclose(library);
    harvest();
    const struct harvest_module *const gone = module_seen(other_library_name);
    assert_non_null(gone);
    assert_true(gone->unloaded);
    assert_in_range(recorded, gone->first_interval, gone->last_interval);
    assert_true(gone->last_interval < modules_interval(&capture.modules));
    assert_int_equal(rule_cache_generation(&capture.rules), generation + 1);
}

/* --- other functions of the interface --- */

static void a_period_is_the_present_one(void **state) {
    (void)state;
    atomic_store(&capture.settings.cpu_period_nano, 1234);
    assert_int_equal(api.harvest.period(CPU_PERIOD), 1234);
    atomic_store(&capture.heap.interval, 4096);
    assert_int_equal(api.harvest.period(ALLOC_INTERVAL), 4096);
    atomic_store(&capture.heap.interval, config.alloc_interval);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(a_sample_is_handed_over_as_it_was_recorded),
        TEST(a_thread_has_the_name_of_the_moment),
        TEST(an_ended_thread_has_the_name_that_it_left),
        TEST(no_thread_has_the_name_of_another),
        TEST(without_memory_for_names_samples_come_without),
        TEST(a_harvest_frees_the_slots_of_ended_threads),
        TEST(live_objects_are_in_each_harvest),
        TEST(a_live_object_grows_old),
        TEST(the_last_harvest_has_the_time_that_no_sample_covers),
        TEST(no_time_is_accounted_for_twice),
        TEST(drops_of_all_places_are_added_up),
        TEST(a_count_that_has_grown_is_logged_once),
        TEST(an_unregistered_thread_is_counted_once),
        TEST(modules_are_those_of_the_last_harvest),
        TEST(an_unloaded_library_keeps_its_names_and_loses_its_rules),
        TEST(a_period_is_the_present_one),
    };
#undef TEST
    return cmocka_run_group_tests(tests, start, finish);
}
