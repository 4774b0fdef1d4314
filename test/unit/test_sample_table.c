/* Tests the table of one thread's samples: equal samples are merged, and the table's memory is
 * bounded and has one owner. */
#include "unit.h"

#include "kernel/stepped_memory.h"

#include "record/chunk_pool.h"
#include "record/sample_table.h"

#include <pthread.h>

/* --- samples --- */

struct seen {
    size_t count;
    uint64_t cpu_ns;
    double bytes;
    bool names_first;
};

static void see(void *arg, const struct sample *sample) {
    struct seen *const seen = arg;
    if (sample->kind == RECORD_THREAD_NAME)
        seen->names_first = seen->count == 0;
    seen->count++;
    seen->cpu_ns += (uint64_t)sample->values[MEASURED_NANO];
    seen->bytes += sample->values[MEASURED_BYTES];
    if (sample->stack_copy) {
        assert_int_equal(sample->stack_copy->size, 4096);
        assert_int_equal(sample->stack_copy->bytes[4095], 0xAB);
        assert_int_equal(sample->stack_copy->registers[REGISTER_PC], 77);
    }
}

static void equal_samples_are_merged(void **state) {
    (void)state;
    static struct chunk_pool pool;
    struct sample_table table = {0};
    struct seen seen = {0};
    for (uint64_t i = 0; i < 30000; i++) {
        const uint64_t frames[] = {i % 1000, 5, 6};
        const struct sample sample = {.kind = SAMPLE_CPU,
                                      .tid = (uint32_t)(i % 2),
                                      .frames = frames,
                                      .frame_count = 3,
                                      .values = {(double)i, 1}};
        assert_true(sample_table_add(&table, &pool, &sample));
    }
    const uint64_t name[] = {'n', 0};
    assert_true(sample_table_add(
        &table, &pool,
        &(struct sample){.kind = RECORD_THREAD_NAME, .frames = name, .frame_count = 2}));
    sample_table_drain(&table, &pool, see, &seen);
    assert_int_equal(seen.count, 1001);
    assert_int_equal(seen.cpu_ns, 29999u * 30000u / 2);
    assert_true(seen.bytes == 30000);
    assert_true(seen.names_first);
    assert_int_equal(table.first_chunk, CHUNK_NONE);
}

static void stack_copies_come_back_whole(void **state) {
    (void)state;
    static struct chunk_pool pool;
    static uint8_t bytes[4096];
    struct sample_table table = {0};
    struct seen seen = {0};
    memset(bytes, 0xAB, sizeof bytes);
    const struct stack_copy copy = {
        .registers = {[REGISTER_PC] = 77}, .size = sizeof bytes, .bytes = bytes};
    const uint64_t frames[] = {1};
    const struct sample sample = {.frames = frames, .frame_count = 1, .stack_copy = &copy};
    for (int i = 0; i < 10; i++)
        assert_true(sample_table_add(&table, &pool, &sample));
    assert_int_equal(table.stack_copies, 10);
    sample_table_drain(&table, &pool, see, &seen);
    assert_int_equal(seen.count, 10); /* such samples are never merged */
}

/* Keeps the times of the sample's span, at the place that the first byte of its id numbers. */
static void see_when(void *arg, const struct sample *sample) {
    struct span_seen *const of = arg;
    of[sample->context->span_id[0]] = *sample->seen;
}

/* Joins the times of all stacks of a span, but leaves out samples without a time. */
static void a_context_has_the_times_of_its_samples(void **state) {
    (void)state;
    static struct chunk_pool pool;
    static const struct sample_context contexts[] = {
        {.span_id = {0}}, {.span_id = {1}}, {.span_id = {2}}};
    static const struct {
        int of;
        struct span_seen seen;
    } samples[] = {{1, {50, 50}}, {2, {40, 41}}, {1, {20, 60}}, {0, {0, 0}}, {1, {55, 55}}};
    struct sample_table table = {0};
    struct span_seen of[3];
    for (uint64_t i = 0; i < 5; i++) {
        const struct sample sample = {.kind = SAMPLE_CPU,
                                      .context = &contexts[samples[i].of],
                                      .seen = samples[i].seen.last_nano ? &samples[i].seen : NULL,
                                      .frames = &i,
                                      .frame_count = 1};
        assert_true(sample_table_add(&table, &pool, &sample));
    }
    sample_table_drain(&table, &pool, see_when, of);
    assert_int_equal(of[0].last_nano, 0);
    assert_int_equal(of[1].first_nano, 20);
    assert_int_equal(of[1].last_nano, 60);
    assert_int_equal(of[2].first_nano, 40);
    assert_int_equal(of[2].last_nano, 41);
}

static void memory_is_bounded_and_comes_back(void **state) {
    (void)state;
    static struct chunk_pool pool;
    struct sample_table table = {0};
    struct seen seen = {0};
    uint64_t added[2] = {0, 0};
    for (int round = 0; round < 2; round++) {
        for (;; added[round]++) {
            uint64_t frames[100] = {added[round]};
            const struct sample sample = {.frames = frames, .frame_count = 100};
            if (!sample_table_add(&table, &pool, &sample))
                break;
        }
        sample_table_drain(&table, &pool, see, &seen);
    }
    assert_int_equal(added[0], added[1]);
    assert_true(added[0] * 100 * 8 < (uint64_t)CHUNK_LIMIT_FURTHER * CHUNK_BYTES);
    assert_true(added[0] * 100 * 8 > (uint64_t)CHUNK_LIMIT_FURTHER * CHUNK_BYTES / 2);
}

static struct chunk_pool shared_pool;
static _Atomic uint32_t owner[CHUNK_LIMIT + 1];

static void *take_and_give(void *arg) {
    const uint32_t me = (uint32_t)(uintptr_t)arg;
    size_t wrong = 0;
    for (int i = 0; i < 100000; i++) {
        const uint32_t a = chunk_pool_take(&shared_pool, CHUNK_LIMIT);
        const uint32_t b = chunk_pool_take(&shared_pool, CHUNK_LIMIT);
        wrong += atomic_exchange(&owner[a], me) != 0;
        wrong += atomic_exchange(&owner[b], me) != 0;
        wrong += atomic_exchange(&owner[a], 0) != me;
        wrong += atomic_exchange(&owner[b], 0) != me;
        chunk_pool_give_back(&shared_pool, a);
        chunk_pool_give_back(&shared_pool, b);
    }
    return (void *)wrong;
}

static void no_chunk_has_two_owners(void **state) {
    (void)state;
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, take_and_give, (void *)(i + 1));
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

int main(void) {
    stepped_memory_allow(UINT64_MAX);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_samples_are_merged),
        cmocka_unit_test(stack_copies_come_back_whole),
        cmocka_unit_test(a_context_has_the_times_of_its_samples),
        cmocka_unit_test(memory_is_bounded_and_comes_back),
        cmocka_unit_test(no_chunk_has_two_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
