/* Compares the table of live objects with an array, fills it to its bound, and shares it between
 * threads and signal handlers. */
#include "unit.h"

#include "kernel/stepped_memory.h"

#include "heap/live_table.h"
#include "poisson.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a random walk beside an array --- */

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
        struct live_object object = {
            .address = address, .objects = which, .size = i, .bytes = which * 3u, .stack = 1};
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
    uint64_t bytes = 0;
    live_table_visit(&table, count_object, &listed);
    for (uint64_t i = 0; i < ADDRESSES; i++) {
        expected += present[i];
        bytes += present[i] * i * 3;
    }
    assert_int_equal(listed, expected);
    assert_int_equal(table.count, expected);
    assert_int_equal(live_table_bytes_live(&table), bytes);
}

struct sifted {
    size_t asked;
    size_t gone;
};

static bool keep_even(void *arg, struct live_object *object) {
    ((struct sifted *)arg)->asked++;
    object->objects = 5;
    object->bytes = 15;
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
    struct live_object object = {.objects = 2, .size = 3, .bytes = 6, .stack = 4, .birth = 7};
    assert_true(live_table_start(&table, MAX_LIVE));
    for (object.address = 16; object.address <= 50000 * 16; object.address += 16)
        assert_true(live_table_insert(&table, &object, &replaced));
    live_table_retain_if(&table, &(struct live_retainer){keep_even, count_gone, &sifted});
    assert_int_equal(sifted.asked, 50000);
    assert_int_equal(sifted.gone, 25000);
    assert_int_equal(table.count, 25000);
    assert_int_equal(live_table_bytes_live(&table), 25000 * 15);
    for (uintptr_t i = 1; i <= 50000; i++) {
        assert_int_equal(live_table_remove(&table, i * 16, &object), i % 2 == 0);
        if (i % 2 == 0)
            assert_true(object.objects == 5 && object.size == 3 && object.stack == 6 &&
                        object.birth == 7);
    }
    assert_int_equal(table.count, 0);
    assert_int_equal(live_table_bytes_live(&table), 0);
}

static void a_full_live_table_refuses_objects(void **state) {
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
    /* a full table still removes objects, and then takes new ones */
    struct live_object object;
    size_t removed = 0;
    for (uintptr_t i = 1; i <= 4 * MAX_LIVE; i++)
        removed += live_table_remove(&table, i * 16, &object);
    assert_int_equal(removed, taken);
}

enum { KEPT = 6000 }; /* objects of each thread: three levels are in use */

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
    for (int i = 0; i < 100; i++) /* meanwhile the harvest reads: every object is whole */
        live_table_visit(&shared_live, check_object, NULL);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

/* --- objects that two threads remove at once --- */

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

/* Frees the same objects in two threads, while a third removes some of them: each object goes
 * once. */
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
    live_table_retain_if(
        &shared_live, &(struct live_retainer){keep_three_quarters, count_sifted, &taken_by_racers});
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(taken_by_racers, RACES);
    assert_int_equal(shared_live.count, 0);
}

/* --- a signal handler that allocates and frees --- */

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

/* --- fork --- */

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
    stepped_memory_allow(UINT64_MAX);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_table_behaves_like_an_array),
        cmocka_unit_test(live_table_is_sifted),
        cmocka_unit_test(a_full_live_table_refuses_objects),
        cmocka_unit_test(live_table_between_threads),
        cmocka_unit_test(each_live_object_goes_once),
        cmocka_unit_test(handlers_find_nothing_half_done),
        cmocka_unit_test(a_forked_child_sees_empty_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
