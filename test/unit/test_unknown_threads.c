/* Tests that a thread counts as unknown if it never registers, whatever the process's other threads
 * do while the kernel's list is read. The replaced system calls let them act at that moment. */
#include "unit.h"

#include "clock.h"
#include "fake_syscall.h"
#include "record/unknown_threads.h"

#include <pthread.h>
#include <sys/syscall.h>

enum { DEPTH = 16, MUCH_NANO = 20 * 1000 * 1000, LITTLE_NANO = 1000 * 1000 };

static struct thread_table threads;
static struct unknown_threads unknown;

/* Describes the one other thread of the process. */
static struct {
    pthread_t id;
    pthread_mutex_t runs; /* locked while it runs */
    _Atomic uint32_t tid;
    struct thread_state *slot;
    uint64_t cpu_nano;
} other;

static void *run(void *argument) {
    (void)argument;
    atomic_store(&other.tid, (uint32_t)syscall(SYS_gettid));
    pthread_mutex_lock(&other.runs);
    pthread_mutex_unlock(&other.runs);
    return NULL;
}

static void other_begins(void) {
    atomic_store(&other.tid, 0);
    pthread_mutex_lock(&other.runs);
    assert_int_equal(pthread_create(&other.id, NULL, run, NULL), 0);
    while (!atomic_load(&other.tid))
        sched_yield();
}

static void other_registers(void) {
    other.slot = thread_table_take(&threads);
    atomic_store(&other.slot->tid, atomic_load(&other.tid));
}

/* Returns once the kernel does not list the thread any more, which is a little after the join. */
static void other_ends(void) {
    pthread_mutex_unlock(&other.runs);
    pthread_join(other.id, NULL);
    while (real_syscall(SYS_tgkill, (long[6]){getpid(), (long)atomic_load(&other.tid), 0}) == 0)
        sched_yield();
    other.id = 0;
}

/* Frees the slot, as the start of yet another thread does if the first has retired. */
static void other_leaves_its_slot(void) {
    thread_table_give_back(&threads, other.slot);
    other.slot = NULL;
}

/* --- replacements of the kernel's calls --- */

static struct {
    void (*list_is_read)(void);
    void (*clock_was_read)(void);
    int clock_reads;
} on;

/* Reports no CPU time of the calling thread, however long the test's start took. That thread stands
 * for the helper, but does not have the name by which the product recognises the helper. */
static long read_clock(const long a[6]) {
    struct timespec *const now = (struct timespec *)a[1];
    if ((clockid_t)a[0] == cpu_clock_of((uint32_t)getpid())) {
        *now = timespec_of(0);
        return 0;
    }
    if ((clockid_t)a[0] != cpu_clock_of(atomic_load(&other.tid)))
        return real_syscall(SYS_clock_gettime, a);
    *now = timespec_of(other.cpu_nano);
    on.clock_reads++;
    if (on.clock_was_read)
        on.clock_was_read();
    on.clock_was_read = NULL;
    return 0;
}

static long fake_syscall(long number, const long a[6]) {
    if (number == SYS_clock_gettime)
        return read_clock(a);
    if (number == SYS_getdents64 && on.list_is_read) {
        on.list_is_read();
        on.list_is_read = NULL;
    }
    return real_syscall(number, a);
}

/* --- the tests --- */

static uint32_t counted(void) {
    return unknown_threads_count(&unknown, &threads, getpid());
}

static int begin(void **state) {
    (void)state;
    memset(&on, 0, sizeof on);
    memset(&unknown, 0, sizeof unknown);
    other.slot = NULL;
    other.cpu_nano = MUCH_NANO;
    thread_table_init(&threads, DEPTH);
    other_begins();
    return 0;
}

static int end(void **state) {
    (void)state;
    if (other.id)
        other_ends();
    thread_table_reset(&threads);
    return 0;
}

static void a_thread_that_never_registers_counts_once(void **state) {
    (void)state;
    assert_int_equal(counted(), 1);
    assert_int_equal(unknown.tids[0], atomic_load(&other.tid));
    assert_int_equal(counted(), 1);
    other_ends();
    assert_int_equal(counted(), 1);
}

static void a_thread_that_has_used_little_does_not_count(void **state) {
    (void)state;
    other.cpu_nano = LITTLE_NANO;
    assert_int_equal(counted(), 0);
    assert_int_equal(on.clock_reads, 1);
}

static void a_thread_that_registers_before_the_list_is_read_does_not_count(void **state) {
    (void)state;
    on.list_is_read = other_registers;
    assert_int_equal(counted(), 0);
    assert_non_null(other.slot);
}

static void a_thread_that_registers_before_its_clock_was_read_does_not_count(void **state) {
    (void)state;
    on.clock_was_read = other_registers;
    assert_int_equal(counted(), 0);
    assert_non_null(other.slot);
}

static void ends_and_leaves(void) {
    other_ends();
    other_leaves_its_slot();
}

static void registers_ends_and_leaves(void) {
    other_registers();
    ends_and_leaves();
}

/* Neither the table nor the kernel has the thread any more. */
static void a_thread_that_ends_once_its_clock_was_read_does_not_count(void **state) {
    (void)state;
    on.clock_was_read = registers_ends_and_leaves;
    assert_int_equal(counted(), 0);
    assert_int_equal(on.clock_reads, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_thread_that_never_registers_counts_once, begin, end),
        cmocka_unit_test_setup_teardown(a_thread_that_has_used_little_does_not_count, begin, end),
        cmocka_unit_test_setup_teardown(
            a_thread_that_registers_before_the_list_is_read_does_not_count, begin, end),
        cmocka_unit_test_setup_teardown(
            a_thread_that_registers_before_its_clock_was_read_does_not_count, begin, end),
        cmocka_unit_test_setup_teardown(a_thread_that_ends_once_its_clock_was_read_does_not_count,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
