/* Tests that each thread records without waiting and the helper takes what is whole: nothing is
 * lost, nothing is counted twice, whichever threads are inside or have ended. */
#include "unit.h"

#include "record/thread_table.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    DEPTH = 16,
    WRITERS = 4,
    RECORDS = 200000,
    ENDED = 1 << 24, /* beyond the ids that the kernel gives (PID_MAX_LIMIT) */
};

static struct thread_table threads;

/* --- replacements of libc's functions, which act while the helper waits for an owner --- */

static struct {
    int count;
    int owner_leaves_after;
    struct thread_state *owner;
} yields;

int sched_yield(void) {
    if (++yields.count == yields.owner_leaves_after)
        atomic_store(&yields.owner->using, 0);
    return yields.owner ? 0 : (int)syscall(SYS_sched_yield);
}

/* --- what was recorded --- */

static struct {
    int records;
    uint64_t nano;
    uint32_t tid;
} seen;

static void see(void *arg, const struct sample *sample) {
    (void)arg;
    seen.records++;
    seen.nano += (uint64_t)sample->values[MEASURED_NANO];
    seen.tid = sample->tid;
}

/* Harvests. Returns the sum of the samples' times, in ns. */
static uint64_t harvested(void) {
    memset(&seen, 0, sizeof seen);
    thread_table_harvest(&threads, see, NULL);
    return seen.nano;
}

static bool record(struct thread_state *thread, uint64_t nano) {
    const uint64_t frames[] = {nano % 50};
    const struct sample sample = {.tid = atomic_load(&thread->tid),
                                  .frames = frames,
                                  .frame_count = 1,
                                  .values = {[MEASURED_NANO] = (double)nano}};
    return thread_record(&threads, thread, &sample);
}

static struct thread_state *begin_thread(uint32_t tid) {
    struct thread_state *const thread = thread_table_take(&threads);
    assert_non_null(thread);
    atomic_store(&thread->tid, tid);
    return thread;
}

static int begin(void **state) {
    (void)state;
    memset(&yields, 0, sizeof yields);
    thread_table_init(&threads, DEPTH);
    return 0;
}

static int end(void **state) {
    (void)state;
    thread_table_reset(&threads);
    return 0;
}

/* --- generations --- */

static void samples_are_visited_once(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(1);
    struct thread_state *const other = begin_thread(2);
    assert_true(record(thread, 3) && record(thread, 3) && record(other, 4));
    assert_int_equal(harvested(), 10);
    assert_int_equal(seen.records, 2); /* equal samples are merged */
    assert_int_equal(harvested(), 0);
    assert_true(record(thread, 5));
    assert_int_equal(harvested(), 5);
}

static void a_harvest_flips_the_generation(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(1);
    const struct thread_state *const idle = begin_thread(2);
    assert_true(record(thread, 1));
    assert_int_equal(harvested(), 1);
    assert_int_equal(atomic_load(&thread->generation), 1);
    assert_int_equal(atomic_load(&idle->generation), 0); /* the idle thread has recorded nothing */
    assert_true(record(thread, 1));
    assert_int_equal(harvested(), 1);
    assert_int_equal(atomic_load(&thread->generation), 0);
    assert_int_equal(yields.count, 0); /* no thread was inside */
}

static void an_owner_inside_is_waited_for(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(1);
    assert_true(record(thread, 7));
    atomic_store(&thread->using, 1 + 0);
    yields.owner = thread;
    yields.owner_leaves_after = 3;
    assert_int_equal(harvested(), 7);
    assert_int_equal(yields.count, 3);
}

/* The owner may have been interrupted there, and for long. */
static void an_owner_that_stays_inside_is_skipped_until_it_has_left(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(1);
    struct thread_state *const other = begin_thread(2);
    assert_true(record(thread, 7) && record(other, 5));
    atomic_store(&thread->using, 1 + 0);
    assert_int_equal(harvested(), 5); /* no harvest waits for the owner because of that */
    assert_in_range(yields.count, 1, 10000);
    yields.count = 0;
    assert_int_equal(harvested(), 0);
    assert_int_equal(yields.count, 0); /* one wait is enough */
    atomic_store(&thread->using, 0);
    assert_true(record(thread, 9)); /* recorded in the other generation */
    assert_int_equal(harvested(), 7 + 9);
    assert_int_equal(harvested(), 0);
}

/* Takes the table that was left behind before it flips again: otherwise both tables of the thread
 * would be the helper's. */
static void a_table_that_was_left_behind_goes_before_the_next(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(1);
    assert_true(record(thread, 7));
    atomic_store(&thread->using, 1 + 0);
    assert_int_equal(harvested(), 0);
    atomic_store(&thread->using, 0);
    assert_true(record(thread, 9));
    atomic_store(&thread->using, 1 + 0); /* used again, before the helper came */
    assert_int_equal(harvested(), 0);
    assert_int_equal(atomic_load(&thread->generation), 1);
    atomic_store(&thread->using, 0);
    assert_int_equal(harvested(), 7 + 9);
}

static void *write_records(void *arg) {
    struct thread_state *const thread = thread_table_take(&threads);
    atomic_store(&thread->tid, (uint32_t)(uintptr_t)arg);
    for (uint64_t i = 0; i < RECORDS; i++) {
        const uint64_t frames[] = {i % 50};
        const struct sample sample = {.tid = (uint32_t)(uintptr_t)arg,
                                      .frames = frames,
                                      .frame_count = 1,
                                      .values = {[MEASURED_NANO] = 1}};
        if (!thread_record(&threads, thread, &sample))
            return (void *)1;
    }
    thread_table_give_back(&threads, thread);
    return NULL;
}

static void harvests_lose_nothing(void **state) {
    (void)state;
    pthread_t ids[WRITERS];
    uint64_t nano = 0;
    for (uintptr_t i = 0; i < WRITERS; i++)
        pthread_create(&ids[i], NULL, write_records, (void *)(i + 1));
    for (int i = 0; i < 300; i++)
        nano += harvested();
    for (int i = 0; i < WRITERS; i++) {
        void *wrong;
        pthread_join(ids[i], &wrong);
        assert_null(wrong);
    }
    for (int i = 0; i < 3; i++)
        nano += harvested();
    assert_int_equal(nano, (uint64_t)WRITERS * RECORDS);
    assert_true(thread_table_count(&threads) <= WRITERS);
}

/* --- threads that end --- */

static int gone;

static void is_gone(struct thread_state *thread) {
    assert_int_equal(atomic_load(&thread->tid), ENDED); /* the slot still has its own id */
    gone++;
}

static void sweep(uint32_t limit) {
    gone = 0;
    thread_table_sweep(&threads, limit, is_gone);
}

static void samples_of_an_ended_thread_are_visited(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(ENDED);
    assert_true(record(thread, 7));
    thread_table_retire(&threads, thread);
    sweep(UINT32_MAX);
    struct thread_state *const next = begin_thread(2);
    assert_ptr_equal(next, thread);
    assert_true(record(next, 7));
    assert_int_equal(harvested(), 14);
    assert_int_equal(seen.records, 2); /* each thread under its own id */
}

static void a_slot_has_nothing_of_the_thread_before(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(ENDED);
    thread->program_context = (void *)thread;
    thread->last_cpu_nano = 5;
    thread->sampled = true;
    atomic_store(&thread->retired, true);
    thread_table_give_back(&threads, thread);
    assert_ptr_equal(thread_table_take(&threads), thread);
    assert_null(thread->program_context);
    assert_int_equal(thread->last_cpu_nano, 0);
    assert_false(thread->sampled);
    assert_false(atomic_load(&thread->retired));
}

static void a_thread_keeps_its_slot_until_the_kernel_forgets_it(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread((uint32_t)gettid());
    thread_table_retire(&threads, thread);
    sweep(UINT32_MAX);
    assert_int_equal(gone, 0);
    assert_int_equal(atomic_load(&thread->tid), gettid());
    atomic_store(&thread->tid, ENDED);
    sweep(UINT32_MAX);
    assert_int_equal(gone, 1);
    assert_int_equal(atomic_load(&thread->tid), 0);
    sweep(UINT32_MAX);
    assert_int_equal(gone, 0);
}

static void a_sweep_checks_no_more_slots_than_requested(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++)
        thread_table_retire(&threads, begin_thread(ENDED));
    sweep(2);
    assert_int_equal(gone, 2);
    sweep(2);
    assert_int_equal(gone, 1);
}

/* --- what was lost --- */

static int64_t dropped(enum drop_reason reason) {
    uint64_t counts[DROP_REASON_COUNT] = {0};
    thread_table_dropped(&threads, counts);
    return (int64_t)counts[reason];
}

static void drops_of_all_threads_are_added_up(void **state) {
    (void)state;
    struct thread_state *const thread = begin_thread(ENDED);
    thread_count_drop(thread, DROP_BUSY);
    thread_count_drops(begin_thread(1), DROP_BUSY, 2);
    assert_int_equal(dropped(DROP_BUSY), 3);
    assert_int_equal(dropped(DROP_TABLE_FULL), 0);
    thread_table_retire(&threads, thread);
    sweep(UINT32_MAX);
    begin_thread(2);
    assert_int_equal(dropped(DROP_BUSY), 3); /* the counts of an ended thread stay */
}

static void threads_without_a_slot_are_counted(void **state) {
    (void)state;
    atomic_store(&threads.fresh, THREAD_SEGMENTS * THREADS_PER_SEGMENT);
    assert_null(thread_table_take(&threads));
    assert_null(thread_table_take(&threads));
    atomic_store(&threads.fresh, 0);
    assert_int_equal(dropped(DROP_NO_THREAD), 2);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(samples_are_visited_once),
        TEST(a_harvest_flips_the_generation),
        TEST(an_owner_inside_is_waited_for),
        TEST(an_owner_that_stays_inside_is_skipped_until_it_has_left),
        TEST(a_table_that_was_left_behind_goes_before_the_next),
        TEST(harvests_lose_nothing),
        TEST(samples_of_an_ended_thread_are_visited),
        TEST(a_slot_has_nothing_of_the_thread_before),
        TEST(a_thread_keeps_its_slot_until_the_kernel_forgets_it),
        TEST(a_sweep_checks_no_more_slots_than_requested),
        TEST(drops_of_all_threads_are_added_up),
        TEST(threads_without_a_slot_are_counted),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
