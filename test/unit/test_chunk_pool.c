/* Tests the chunks of the threads' tables: their charge, and the reasons for which a chunk is
 * refused. */
#include "unit.h"

#include "fake_syscall.h"
#include "kernel/stepped_memory.h"
#include "record/chunk_pool.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { PART = 4 /* tables get this part of the room */ };

static struct chunk_pool pool;

/* Takes a chunk while the kernel refuses to map memory. */
static uint32_t take_without_memory(void) {
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit none = {0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    const uint32_t number = chunk_pool_take(&pool, CHUNK_LIMIT_FURTHER);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    return number;
}

static void a_refused_segment_gives_its_charge_back(void **state) {
    (void)state;
    stepped_memory_allow((uint64_t)PART * CHUNK_BYTES);
    assert_int_equal(take_without_memory(), CHUNK_NONE);
    assert_int_equal(chunk_pool_drop_reason(&pool), DROP_NO_MEMORY);
    assert_int_not_equal(chunk_pool_take(&pool, CHUNK_LIMIT_FURTHER), CHUNK_NONE);
    assert_false(stepped_memory_charge(1));
}

static void a_forked_child_does_not_keep_its_parents_charge(void **state) {
    (void)state;
    enum { CHUNKS = 10 };
    stepped_memory_allow(UINT64_MAX);
    for (int i = 0; i < CHUNKS; i++)
        assert_int_not_equal(chunk_pool_take(&pool, CHUNK_LIMIT_FURTHER), CHUNK_NONE);
    assert_int_not_equal(chunk_pool_take(&pool, CHUNK_LIMIT), CHUNK_NONE); /* not charged */
    stepped_memory_allow(0);
    assert_false(stepped_memory_charge(1));
    chunk_pool_reset(&pool);
    assert_true(stepped_memory_charge((size_t)CHUNKS * CHUNK_BYTES));
    assert_false(stepped_memory_charge(1));
    stepped_memory_discharge((size_t)CHUNKS * CHUNK_BYTES);
}

static void a_full_pool_and_refused_memory_are_told_apart(void **state) {
    (void)state;
    enum { MOST = 3 };
    stepped_memory_allow(UINT64_MAX);
    for (int i = 0; i < MOST; i++)
        assert_int_not_equal(chunk_pool_take(&pool, MOST), CHUNK_NONE);
    stepped_memory_allow(0);
    assert_int_equal(chunk_pool_take(&pool, CHUNK_LIMIT_FURTHER), CHUNK_NONE);
    assert_int_equal(chunk_pool_drop_reason(&pool), DROP_NO_MEMORY);
    assert_int_equal(chunk_pool_take(&pool, MOST), CHUNK_NONE);
    assert_int_equal(chunk_pool_drop_reason(&pool), DROP_TABLE_FULL);
}

/* --- a race --- */

static bool races; /* another thread maps the first segment while this one does */
static uintptr_t winner;
static uintptr_t loser;
static unsigned unmapped_by_call; /* number of bare system calls that unmapped `loser` */
static unsigned unmapped_by_hook;

static long fake_syscall(long number, const long a[6]) {
    unmapped_by_call += number == SYS_munmap && (uintptr_t)a[0] == loser;
    const long result = real_syscall(number, a);
    if (number == SYS_mmap && races && !winner) {
        loser = (uintptr_t)result;
        winner = (uintptr_t)real_syscall(number, a);
        atomic_store(&pool.segments[0], winner);
    }
    return result;
}

/* Stands for the hook of the preloaded object. */
int munmap(void *memory, size_t size) {
    (void)memory;
    (void)size;
    unmapped_by_hook++;
    return 0;
}

static void the_loser_of_a_race_unmaps_its_segment_without_the_hook(void **state) {
    (void)state;
    stepped_memory_allow(UINT64_MAX);
    races = true;
    const uint32_t number = chunk_pool_take(&pool, CHUNK_LIMIT);
    races = false;
    assert_int_not_equal(winner, 0);
    assert_int_equal(chunk_at(&pool, number), winner);
    assert_int_equal(unmapped_by_hook, 0);
    assert_int_equal(unmapped_by_call, 1);
}

static int new_pool(void **state) {
    (void)state;
    chunk_pool_reset(&pool);
    memset(&pool, 0, sizeof pool);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_refused_segment_gives_its_charge_back, new_pool),
        cmocka_unit_test_setup(a_forked_child_does_not_keep_its_parents_charge, new_pool),
        cmocka_unit_test_setup(a_full_pool_and_refused_memory_are_told_apart, new_pool),
        cmocka_unit_test_setup(the_loser_of_a_race_unmaps_its_segment_without_the_hook, new_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
