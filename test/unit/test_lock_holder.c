/* Tests finding the thread that holds a lock, mostly with locks that glibc itself has made and
 * taken. */
#include "unit.h"

#include "wait/lock_holder.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

static uint32_t tid(void) {
    return (uint32_t)syscall(SYS_gettid);
}

static uint32_t holder_for(const void *lock, enum lock_layout layout, uint32_t waiter) {
    return lock_holder(WAIT_LOCK | (uint32_t)layout, (uintptr_t)lock, waiter);
}

static uint32_t holder_of(const void *lock, enum lock_layout layout) {
    const uint32_t what = WAIT_LOCK | (uint32_t)layout;
    const uint32_t here = lock_holder_here(what, lock);
    assert_int_equal(holder_for(lock, layout, tid() + 1), here);
    return here;
}

/* --- mutexes --- */

struct mutex_kind {
    const char *name;
    int type;
    int protocol;
    int robust;
};
static const struct mutex_kind kinds[] = {
    {"normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED},
    {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED},
    {"recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED},
    {"error-checking", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED},
    {"robust", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST},
    {"inherits", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED},
    {"both", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_ROBUST},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void make(pthread_mutex_t *mutex, const struct mutex_kind *kind) {
    pthread_mutexattr_t attributes;
    assert_int_equal(pthread_mutexattr_init(&attributes), 0);
    assert_int_equal(pthread_mutexattr_settype(&attributes, kind->type), 0);
    assert_int_equal(pthread_mutexattr_setprotocol(&attributes, kind->protocol), 0);
    assert_int_equal(pthread_mutexattr_setrobust(&attributes, kind->robust), 0);
    assert_int_equal(pthread_mutex_init(mutex, &attributes), 0);
    pthread_mutexattr_destroy(&attributes);
}

static void a_mutex_names_its_holder(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;
        make(&mutex, &kinds[i]);
        assert_int_equal(holder_of(&mutex, LOCK_MUTEX), 0);
        assert_int_equal(pthread_mutex_lock(&mutex), 0);
        assert_int_equal(holder_of(&mutex, LOCK_MUTEX), tid());
        pthread_mutex_unlock(&mutex);
        assert_int_equal(holder_of(&mutex, LOCK_MUTEX), 0);
        pthread_mutex_destroy(&mutex);
    }
}

static void a_mutex_of_c11_has_its_holder(void **state) {
    (void)state;
    mtx_t mutex;
    assert_int_equal(mtx_init(&mutex, mtx_plain), thrd_success);
    assert_int_equal(mtx_lock(&mutex), thrd_success);
    assert_int_equal(holder_of(&mutex, LOCK_MUTEX), tid());
    mtx_unlock(&mutex);
    mtx_destroy(&mutex);
}

static void only_one_that_counts_or_complains_is_given_again(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;
        make(&mutex, &kinds[i]);
        assert_int_equal(pthread_mutex_lock(&mutex), 0);
        assert_int_equal(mutex_needs_no_wait(&mutex, tid()),
                         kinds[i].type == PTHREAD_MUTEX_RECURSIVE ||
                             kinds[i].type == PTHREAD_MUTEX_ERRORCHECK);
        assert_false(mutex_needs_no_wait(&mutex, tid() + 1));
        pthread_mutex_unlock(&mutex);
        pthread_mutex_destroy(&mutex);
    }
}

static void *takes(void *mutex) {
    pthread_mutex_lock(mutex);
    return NULL;
}

static void a_lock_whose_owner_died_causes_no_wait(void **state) {
    (void)state;
    pthread_mutex_t mutex;
    pthread_t owner;
    make(&mutex, &kinds[4]);
    assert_int_equal(pthread_create(&owner, NULL, takes, &mutex), 0);
    pthread_join(owner, NULL);
    assert_true(mutex_needs_no_wait(&mutex, tid()));
    assert_int_equal(holder_of(&mutex, LOCK_MUTEX), 0);
    pthread_mutex_destroy(&mutex);
}

/* Writes the mutex by hand as glibc's pthread_mutex_init and its lock leave it: the kernel allows
 * this kind only to root and other privileged users. */
static void a_ceiling_is_no_holder(void **state) {
    (void)state;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    mutex.__data.__kind = 64;
    mutex.__data.__lock = 1 << 19;
    assert_true(mutex_needs_no_wait(&mutex, tid()));
    mutex.__data.__lock |= 1;
    assert_false(mutex_needs_no_wait(&mutex, tid()));
}

/* --- other locks --- */

static void a_read_write_lock_names_its_writer(void **state) {
    (void)state;
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    assert_int_equal(pthread_rwlock_rdlock(&lock), 0);
    assert_int_equal(holder_of(&lock, LOCK_RWLOCK), 0);
    pthread_rwlock_unlock(&lock);
    assert_int_equal(pthread_rwlock_wrlock(&lock), 0);
    assert_int_equal(holder_of(&lock, LOCK_RWLOCK), tid());
    pthread_rwlock_unlock(&lock);
    assert_int_equal(holder_of(&lock, LOCK_RWLOCK), 0);
}

static void a_futex_with_inheritance_names_its_holder(void **state) {
    (void)state;
    uint32_t word = 0;
    if (syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) != 0)
        word = tid(); /* the kernel would write so */
    assert_int_equal(holder_of(&word, LOCK_PI_FUTEX), tid());
    word |= FUTEX_WAITERS;
    assert_int_equal(holder_of(&word, LOCK_PI_FUTEX), tid());
}

/* Acts as the kernel, which writes down the thread that it wakes (FUTEX_UNLOCK_PI); glibc writes
 * the owner when that thread runs. */
static void a_lock_handed_to_its_waiter_has_no_holder(void **state) {
    (void)state;
    pthread_mutex_t mutex;
    make(&mutex, &kinds[5]);
    mutex.__data.__lock = (int)(tid() | FUTEX_WAITERS);
    assert_int_equal(holder_for(&mutex, LOCK_MUTEX, tid()), 0);
    assert_int_equal(holder_for(&mutex, LOCK_MUTEX, tid() + 1), tid());
    const uint32_t word = tid() | FUTEX_WAITERS;
    assert_int_equal(holder_for(&word, LOCK_PI_FUTEX, tid()), 0);
    assert_int_equal(holder_for(&word, LOCK_PI_FUTEX, tid() + 1), tid());
}

static void a_thread_that_waits_for_its_own_mutex_is_its_holder(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;
        make(&mutex, &kinds[i]);
        assert_int_equal(pthread_mutex_lock(&mutex), 0);
        assert_int_equal(holder_for(&mutex, LOCK_MUTEX, tid()), tid());
        pthread_mutex_unlock(&mutex);
        pthread_mutex_destroy(&mutex);
    }
}

static void locks_without_an_owner_field_have_no_holder(void **state) {
    (void)state;
    uint32_t words[16];
    for (int i = 0; i < 16; i++)
        words[i] = tid();
    assert_int_equal(holder_of(words, LOCK_SILENT), 0);
    assert_int_equal(lock_holder(WAIT_POLL, (uintptr_t)words, 1), 0);
    assert_int_equal(lock_holder_here(WAIT_POLL, words), 0);
}

static void memory_that_is_gone_has_no_holder(void **state) {
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *const memory =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    munmap(memory + page, page);
    /* the lock's first words are mapped */
    assert_int_equal(lock_holder(WAIT_LOCK, (uintptr_t)memory + page - 16, 1), 0);
    munmap(memory, page);
    assert_int_equal(lock_holder(WAIT_LOCK, (uintptr_t)memory, 1), 0);
    assert_int_equal(lock_holder(WAIT_LOCK | LOCK_RWLOCK, 0, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mutex_names_its_holder),
        cmocka_unit_test(a_mutex_of_c11_has_its_holder),
        cmocka_unit_test(only_one_that_counts_or_complains_is_given_again),
        cmocka_unit_test(a_lock_whose_owner_died_causes_no_wait),
        cmocka_unit_test(a_ceiling_is_no_holder),
        cmocka_unit_test(a_read_write_lock_names_its_writer),
        cmocka_unit_test(a_futex_with_inheritance_names_its_holder),
        cmocka_unit_test(a_lock_handed_to_its_waiter_has_no_holder),
        cmocka_unit_test(a_thread_that_waits_for_its_own_mutex_is_its_holder),
        cmocka_unit_test(locks_without_an_owner_field_have_no_holder),
        cmocka_unit_test(memory_that_is_gone_has_no_holder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
