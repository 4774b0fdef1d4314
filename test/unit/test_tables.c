/* The tables of the capture side: against naive twins, at their bounds, and between threads. */
#include "unit.h"

#include "hash.h"
#include "heap/live_table.h"
#include "heap/stack_store.h"
#include "poisson.h"
#include "record/chunk_pool.h"
#include "record/sample_table.h"
#include "record/thread_table.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- live table: a random walk beside an array --- */

enum { ADDRESSES = 4096, STEPS = 400000, MAX_LIVE = 65536 };

static void count_object(void *arg, const struct live_object *object) {
    (void)object;
    ++*(size_t *)arg;
}

static void live_table_behaves_like_an_array(void **state) {
    (void)state;
    static bool present[ADDRESSES];
    struct live_table table;
    uint64_t random = 7;
    assert_true(live_table_start(&table, MAX_LIVE));
    for (int i = 0; i < STEPS; i++) {
        const uint32_t which = (uint32_t)(random_next(&random) % ADDRESSES);
        const uintptr_t address = 0x7f0000000000u + which * 48u;
        struct live_object object = {.address = address, .objects = which, .size = i, .stack = 1};
        if (random_next(&random) & 1) {
            bool replaced;
            assert_true(live_table_insert(&table, &object, &replaced));
            assert_int_equal(replaced, present[which]);
            present[which] = true;
        } else {
            assert_int_equal(live_table_remove(&table, address, &object), present[which]);
            if (present[which])
                assert_true(object.objects == which);
            present[which] = false;
        }
    }
    size_t listed = 0;
    size_t expected = 0;
    live_table_visit(&table, count_object, &listed);
    for (int i = 0; i < ADDRESSES; i++)
        expected += present[i];
    assert_int_equal(listed, expected);
    assert_int_equal(table.count, expected);
}

struct sifted {
    size_t asked;
    size_t gone;
};

static bool keep_even(void *arg, struct live_object *object) {
    ((struct sifted *)arg)->asked++;
    object->objects = 5;
    object->stack = 6;
    return (object->address / 16) % 2 == 0;
}

static void count_gone(void *arg, const struct live_object *object) {
    assert_int_equal((object->address / 16) % 2, 1);
    assert_true(object->objects == 2);
    ((struct sifted *)arg)->gone++;
}

static void live_table_is_sifted(void **state) {
    (void)state;
    struct live_table table;
    bool replaced;
    struct sifted sifted = {0, 0};
    struct live_object object = {.objects = 2, .size = 3, .stack = 4, .birth = 7};
    assert_true(live_table_start(&table, MAX_LIVE));
    for (object.address = 16; object.address <= 50000 * 16; object.address += 16)
        assert_true(live_table_insert(&table, &object, &replaced));
    live_table_sift(&table, &(struct live_sieve){keep_even, count_gone, &sifted});
    assert_int_equal(sifted.asked, 50000);
    assert_int_equal(sifted.gone, 25000);
    assert_int_equal(table.count, 25000);
    for (uintptr_t i = 1; i <= 50000; i++) {
        assert_int_equal(live_table_remove(&table, i * 16, &object), i % 2 == 0);
        if (i % 2 == 0)
            assert_true(object.objects == 5 && object.size == 3 && object.stack == 6 &&
                        object.birth == 7);
    }
    assert_int_equal(table.count, 0);
}

static void live_table_says_when_it_is_full(void **state) {
    (void)state;
    struct live_table table;
    size_t taken = 0;
    bool replaced;
    assert_true(live_table_start(&table, MAX_LIVE));
    for (uintptr_t i = 1; i <= 4 * MAX_LIVE; i++) {
        const struct live_object object = {.address = i * 16, .stack = 1};
        taken += live_table_insert(&table, &object, &replaced);
    }
    assert_true(taken > MAX_LIVE && taken < 4 * MAX_LIVE);
    assert_int_equal(taken, table.count);
    /* a full table still gives back, and then takes again */
    struct live_object object;
    size_t removed = 0;
    for (uintptr_t i = 1; i <= 4 * MAX_LIVE; i++)
        removed += live_table_remove(&table, i * 16, &object);
    assert_int_equal(removed, taken);
}

enum { KEPT = 6000 }; /* of each thread: three levels are in use */

static struct live_table shared_live;

static void *churn(void *arg) {
    const uintptr_t base = (uintptr_t)arg;
    size_t wrong = 0;
    for (int i = 0; i < 200000 + KEPT; i++) {
        struct live_object object = {
            .address = base + (uintptr_t)(i % 10007) * 16, .objects = (double)base, .stack = 1};
        bool replaced;
        if (i < 200000)
            wrong += !live_table_insert(&shared_live, &object, &replaced);
        if (i < KEPT)
            continue;
        object.address = base + (uintptr_t)((i - KEPT) % 10007) * 16;
        wrong += !live_table_remove(&shared_live, object.address, &object) ||
                 object.objects != (double)base;
    }
    return (void *)wrong;
}

static void check_object(void *arg, const struct live_object *object) {
    (void)arg;
    assert_true(object->objects == (double)(object->address >> 20 << 20));
}

static void live_table_between_threads(void **state) {
    (void)state;
    pthread_t threads[4];
    assert_true(live_table_start(&shared_live, MAX_LIVE));
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, (void *)((i + 1) << 20));
    for (int i = 0; i < 100; i++) /* the harvest, meanwhile: every object whole */
        live_table_visit(&shared_live, check_object, NULL);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

/* --- live table: objects that two want at once --- */

enum { RACES = 200000 };

static _Atomic uint64_t taken_by_racers;

static void *take_all(void *unused) {
    struct live_object object;
    for (uintptr_t i = 1; i <= RACES; i++)
        atomic_fetch_add(&taken_by_racers, live_table_remove(&shared_live, i * 16, &object));
    return unused;
}

static bool keep_three_quarters(void *arg, struct live_object *object) {
    (void)arg;
    object->objects *= 2;
    return object->address / 16 % 4 != 0;
}

static void count_sifted(void *arg, const struct live_object *object) {
    (void)object;
    atomic_fetch_add((_Atomic uint64_t *)arg, 1);
}

/* Two threads that free the same objects, and one that sifts them: each object goes once. */
static void each_live_object_goes_once(void **state) {
    (void)state;
    pthread_t threads[2];
    bool replaced;
    assert_true(live_table_start(&shared_live, RACES));
    struct live_object object = {.objects = 1, .size = 1, .stack = 1};
    for (object.address = 16; object.address <= RACES * 16; object.address += 16)
        assert_true(live_table_insert(&shared_live, &object, &replaced));
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, take_all, NULL);
    live_table_sift(&shared_live,
                    &(struct live_sieve){keep_three_quarters, count_sifted, &taken_by_racers});
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(taken_by_racers, RACES);
    assert_int_equal(shared_live.count, 0);
}

/* --- live table: a signal handler that allocates and frees --- */

enum { HANDLER_OBJECTS = 50, MAIN_OBJECTS = 3000, INTERRUPTIONS = 2000 };

static _Atomic int interruptions;
static _Atomic int wrong_in_handler;

static void use_table(int number) {
    bool replaced;
    (void)number;
    struct live_object object = {.objects = 7, .size = 1, .stack = 1};
    for (uintptr_t i = 1; i <= HANDLER_OBJECTS; i++) {
        object.address = (UINT64_C(1) << 40) + i * 16;
        wrong_in_handler += !live_table_insert(&shared_live, &object, &replaced) || replaced;
    }
    for (uintptr_t i = 1; i <= HANDLER_OBJECTS; i++)
        wrong_in_handler +=
            !live_table_remove(&shared_live, (UINT64_C(1) << 40) + i * 16, &object) ||
            object.objects != 7;
    interruptions++;
}

static void handlers_find_nothing_half_done(void **state) {
    (void)state;
    bool replaced;
    struct live_object object;
    struct sigaction action = {.sa_handler = use_table};
    const struct itimerval often = {{0, 50}, {0, 50}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    assert_true(live_table_start(&shared_live, MAX_LIVE));
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    while (interruptions < INTERRUPTIONS) {
        for (uintptr_t i = 1; i <= MAIN_OBJECTS; i++) {
            object = (struct live_object){.address = i * 16, .objects = 1, .size = 1, .stack = 1};
            assert_true(live_table_insert(&shared_live, &object, &replaced));
            assert_false(replaced);
        }
        for (uintptr_t i = 1; i <= MAIN_OBJECTS; i++)
            assert_true(live_table_remove(&shared_live, i * 16, &object) && object.objects == 1);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    assert_int_equal(wrong_in_handler, 0);
    assert_int_equal(shared_live.count, 0);
}

/* --- stack store --- */

static void stack_store_keeps_each_stack_once(void **state) {
    (void)state;
    struct stack_store store;
    assert_true(stack_store_start(&store));
    uint64_t frames[] = {1, 2, 3};
    const uint32_t first = stack_store_keep(&store, 0, frames, 3, 0, 7);
    assert_int_not_equal(first, STACK_NONE);
    assert_int_equal(stack_store_keep(&store, 0, frames, 3, 0, 7), first);
    assert_int_not_equal(stack_store_keep(&store, 0, frames, 3, 1, 7), first);
    assert_int_not_equal(stack_store_keep(&store, 0, frames, 2, 0, 7), first);
    assert_int_equal(stack_store_at(&store, first)->frame_count, 3);
    assert_int_equal(stack_store_at(&store, first)->frames[2], 3);
    uint32_t kept = 0;
    for (frames[0] = 1000; stack_store_keep(&store, 0, frames, 3, 0, 7) != STACK_NONE; frames[0]++)
        kept++;
    assert_true(kept > 100000);
    assert_int_equal(stack_store_keep(&store, 0, (uint64_t[]){1, 2, 3}, 3, 0, 7), first);
}

static struct stack_store turned;
static uint32_t in_use[1000];

static void carry_in_use(void *arg) {
    (void)arg;
    for (size_t i = 0; i < sizeof in_use / sizeof *in_use; i++)
        in_use[i] = stack_store_carry(&turned, in_use[i]);
}

/* Ten times the room, of which a thousand stacks are in use at a time. */
static void stack_store_turns(void **state) {
    (void)state;
    uint64_t frames[10] = {0};
    int turns = 0;
    assert_true(stack_store_start(&turned));
    for (uint64_t i = 0; i < 2000000; i++) {
        const uint32_t arena = stack_store_enter(&turned);
        frames[3] = i;
        const uint32_t kept = stack_store_keep(&turned, arena, frames, 10, 0, i);
        assert_int_not_equal(kept, STACK_NONE);
        assert_int_equal(stack_store_arena(kept), arena);
        in_use[i % 1000] = kept;
        stack_store_leave(&turned, arena);
        if (i >= 1000 && i % 5000 == 0) {
            stack_store_turn(&turned, carry_in_use, NULL);
            turns += stack_store_turn_count(&turned) % 2 != arena;
        }
    }
    assert_true(turns > 10);
    for (uint64_t i = 2000000 - 1000; i < 2000000; i++) {
        const struct stored_stack *const stack = stack_store_at(&turned, in_use[i % 1000]);
        assert_int_equal(stack->frames[3], i);
        assert_int_equal(stack->interval, i);
        assert_int_equal(stack->frame_count, 10);
    }
}

/* As long as somebody is in the old arena, nothing of it goes. */
static void stack_store_waits_for_who_is_in(void **state) {
    (void)state;
    uint64_t frames[100] = {0};
    assert_true(stack_store_start(&turned));
    const uint32_t arena = stack_store_enter(&turned);
    uint32_t kept = STACK_NONE;
    for (frames[0] = 1; frames[0] < 12000; frames[0]++)
        kept = stack_store_keep(&turned, arena, frames, 100, 0, 0);
    for (size_t i = 0; i < sizeof in_use / sizeof *in_use; i++)
        in_use[i] = kept;
    stack_store_turn(&turned, carry_in_use, NULL);
    assert_int_equal(in_use[0], kept);
    assert_int_equal(stack_store_at(&turned, kept)->frames[0], 11999);
    stack_store_leave(&turned, arena);
    stack_store_turn(&turned, carry_in_use, NULL);
    assert_int_not_equal(in_use[0], kept);
    assert_int_equal(stack_store_at(&turned, in_use[0])->frames[0], 11999);
    assert_int_equal(stack_store_at(&turned, kept)->frames[0], 0);
}

/* --- sample table --- */

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
    assert_int_equal(seen.count, 10); /* never merged */
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

/* --- generations: nothing is lost, nothing counted twice, while the helper harvests --- */

static struct thread_table threads;
enum { WRITERS = 4, RECORDS = 200000 };

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
    struct seen seen = {0};
    thread_table_init(&threads, 16);
    for (uintptr_t i = 0; i < WRITERS; i++)
        pthread_create(&ids[i], NULL, write_records, (void *)(i + 1));
    for (int i = 0; i < 300; i++)
        thread_table_harvest(&threads, see, &seen);
    for (int i = 0; i < WRITERS; i++) {
        void *wrong;
        pthread_join(ids[i], &wrong);
        assert_null(wrong);
    }
    for (int i = 0; i < 3; i++)
        thread_table_harvest(&threads, see, &seen);
    assert_int_equal(seen.cpu_ns, (uint64_t)WRITERS * RECORDS);
    assert_true(thread_table_count(&threads) <= WRITERS);
}

static void a_forked_child_sees_empty_tables(void **state) {
    (void)state;
    struct live_table table;
    bool replaced;
    struct live_object object = {.address = 4096, .stack = 1};
    assert_true(live_table_start(&table, MAX_LIVE));
    assert_true(live_table_insert(&table, &object, &replaced));
    const pid_t child = fork();
    if (child == 0)
        _exit(live_table_remove(&table, 4096, &object) ? 1 : 0);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_true(live_table_remove(&table, 4096, &object));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_table_behaves_like_an_array),
        cmocka_unit_test(live_table_is_sifted),
        cmocka_unit_test(live_table_says_when_it_is_full),
        cmocka_unit_test(live_table_between_threads),
        cmocka_unit_test(each_live_object_goes_once),
        cmocka_unit_test(handlers_find_nothing_half_done),
        cmocka_unit_test(stack_store_keeps_each_stack_once),
        cmocka_unit_test(stack_store_turns),
        cmocka_unit_test(stack_store_waits_for_who_is_in),
        cmocka_unit_test(equal_samples_are_merged),
        cmocka_unit_test(stack_copies_come_back_whole),
        cmocka_unit_test(memory_is_bounded_and_comes_back),
        cmocka_unit_test(no_chunk_has_two_owners),
        cmocka_unit_test(harvests_lose_nothing),
        cmocka_unit_test(a_forked_child_sees_empty_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
