/* Has two threads and locks of each kind: "holder" takes one, waits until "waiter" waits for it
 * too, and holds it for a while longer. Then "waiter" takes it again and again while it is free.
 *
 * Prints a line for each kind: name, address, how many times the waiter waited, and for how many
 * nanoseconds: at least (the time that the holder saw), and at most (by the waiter's own clock
 * around the call).
 */
#define _GNU_SOURCE
#include "cpu_work.h"
#include "thread_sleeps.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 5, FREE_TURNS = 1000, HOLD_MS = 10 };

static void check(int result) {
    if (result == 0)
        return;
    fprintf(stderr, "holds_locks: %s\n", strerror(result));
    exit(1);
}

static struct timespec far_away(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += 600;
    return t;
}

/* --- locks --- */

#define MUTEX(name) static pthread_mutex_t lock_##name
MUTEX(normal);
MUTEX(recursive);
MUTEX(error_checking);
MUTEX(adaptive);
MUTEX(robust);
MUTEX(inheriting);
MUTEX(timed);
MUTEX(clocked);
static mtx_t lock_c11, lock_c11_timed;
static pthread_rwlock_t lock_reader = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t lock_writer = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t lock_timed_reader = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t lock_timed_writer = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t lock_clocked_reader = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t lock_clocked_writer = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t lock_behind_reader = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t lock_spinning;
static _Atomic uint32_t lock_word;
static _Atomic uint32_t lock_pi_word;

/* Implements mutex 2 of Ulrich Drepper's "Futexes Are Tricky": the value 2 means that other threads
 * wait. */
static void word_lock(_Atomic uint32_t *word) {
    while (atomic_exchange(word, 2) != 0)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}
static void word_unlock(_Atomic uint32_t *word) {
    atomic_store(word, 0);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
static void pi_lock(_Atomic uint32_t *word) {
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong(word, &nobody, (uint32_t)syscall(SYS_gettid)))
        syscall(SYS_futex, word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
}
static void pi_unlock(_Atomic uint32_t *word) {
    uint32_t mine = (uint32_t)syscall(SYS_gettid);
    if (!atomic_compare_exchange_strong(word, &mine, 0))
        syscall(SYS_futex, word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
}

static void make(pthread_mutex_t *mutex, int type, int protocol, int robust) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    check(pthread_mutexattr_settype(&attributes, type));
    check(pthread_mutexattr_setprotocol(&attributes, protocol));
    check(pthread_mutexattr_setrobust(&attributes, robust));
    check(pthread_mutex_init(mutex, &attributes));
}

static void make_locks(void) {
    make(&lock_recursive, PTHREAD_MUTEX_RECURSIVE, 0, 0);
    make(&lock_error_checking, PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    make(&lock_adaptive, PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0);
    make(&lock_robust, PTHREAD_MUTEX_NORMAL, 0, PTHREAD_MUTEX_ROBUST);
    make(&lock_inheriting, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0);
    mtx_init(&lock_c11, mtx_plain);
    mtx_init(&lock_c11_timed, mtx_timed);
    pthread_spin_init(&lock_spinning, 0);
}

/* --- each kind of lock: how it is held, and waited for --- */

struct kind {
    const char *name;
    void *lock;
    bool spins;
    void (*hold)(void);
    void (*wait)(void);
    void (*let_go)(void);
};

/* Defines the functions of a kind: `take` is run by the holder, `wait` by the waiter, in a function
 * of its own, and `drop` by both, to release the lock. */
#define KIND(name, take, wait, drop)                                                               \
    static void hold_##name(void) {                                                                \
        take;                                                                                      \
    }                                                                                              \
    NOIPA static void waits_for_##name(void) {                                                     \
        wait;                                                                                      \
        __asm__ volatile("" : : : "memory");                                                       \
    }                                                                                              \
    static void let_go_##name(void) {                                                              \
        drop;                                                                                      \
    }
#define PLAIN(name)                                                                                \
    KIND(name, check(pthread_mutex_lock(&lock_##name)), check(pthread_mutex_lock(&lock_##name)),   \
         check(pthread_mutex_unlock(&lock_##name)))

PLAIN(normal)
PLAIN(recursive)
PLAIN(error_checking)
PLAIN(adaptive)
PLAIN(robust)
PLAIN(inheriting)
KIND(timed, check(pthread_mutex_lock(&lock_timed)),
     const struct timespec until = far_away(CLOCK_REALTIME);
     check(pthread_mutex_timedlock(&lock_timed, &until)), check(pthread_mutex_unlock(&lock_timed)))
KIND(clocked, check(pthread_mutex_lock(&lock_clocked)),
     const struct timespec until = far_away(CLOCK_MONOTONIC);
     check(pthread_mutex_clocklock(&lock_clocked, CLOCK_MONOTONIC, &until)),
     check(pthread_mutex_unlock(&lock_clocked)))
KIND(c11, check(mtx_lock(&lock_c11)), check(mtx_lock(&lock_c11)), check(mtx_unlock(&lock_c11)))
KIND(c11_timed, check(mtx_lock(&lock_c11_timed)),
     const struct timespec until = far_away(CLOCK_REALTIME);
     check(mtx_timedlock(&lock_c11_timed, &until)), check(mtx_unlock(&lock_c11_timed)))
#define RWLOCK(name, wait)                                                                         \
    KIND(name, check(pthread_rwlock_wrlock(&lock_##name)), wait,                                   \
         check(pthread_rwlock_unlock(&lock_##name)))
RWLOCK(reader, check(pthread_rwlock_rdlock(&lock_reader)))
RWLOCK(writer, check(pthread_rwlock_wrlock(&lock_writer)))
RWLOCK(timed_reader, const struct timespec until = far_away(CLOCK_REALTIME);
       check(pthread_rwlock_timedrdlock(&lock_timed_reader, &until)))
RWLOCK(timed_writer, const struct timespec until = far_away(CLOCK_REALTIME);
       check(pthread_rwlock_timedwrlock(&lock_timed_writer, &until)))
RWLOCK(clocked_reader, const struct timespec until = far_away(CLOCK_MONOTONIC);
       check(pthread_rwlock_clockrdlock(&lock_clocked_reader, CLOCK_MONOTONIC, &until)))
RWLOCK(clocked_writer, const struct timespec until = far_away(CLOCK_MONOTONIC);
       check(pthread_rwlock_clockwrlock(&lock_clocked_writer, CLOCK_MONOTONIC, &until)))
KIND(behind_reader, check(pthread_rwlock_rdlock(&lock_behind_reader)),
     check(pthread_rwlock_wrlock(&lock_behind_reader)),
     check(pthread_rwlock_unlock(&lock_behind_reader)))
KIND(spinning, check(pthread_spin_lock(&lock_spinning)), check(pthread_spin_lock(&lock_spinning)),
     check(pthread_spin_unlock(&lock_spinning)))
KIND(word, word_lock(&lock_word), word_lock(&lock_word), word_unlock(&lock_word))
KIND(pi_word, pi_lock(&lock_pi_word), pi_lock(&lock_pi_word), pi_unlock(&lock_pi_word))

#define ROW(name, address, spins)                                                                  \
    { #name, address, spins, hold_##name, waits_for_##name, let_go_##name }
#define ROW_OF(name) ROW(name, (void *)&lock_##name, false)
static const struct kind kinds[] = {
    ROW_OF(normal),
    ROW_OF(recursive),
    ROW_OF(error_checking),
    ROW_OF(adaptive),
    ROW_OF(robust),
    ROW_OF(inheriting),
    ROW_OF(timed),
    ROW_OF(clocked),
    ROW_OF(c11),
    ROW_OF(c11_timed),
    ROW_OF(reader),
    ROW_OF(writer),
    ROW_OF(timed_reader),
    ROW_OF(timed_writer),
    ROW_OF(clocked_reader),
    ROW_OF(clocked_writer),
    ROW_OF(behind_reader),
    ROW_OF(word),
    ROW_OF(pi_word),
    ROW(spinning, (void *)(uintptr_t)&lock_spinning, true),
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* --- the two threads --- */

static sem_t held, done;
static atomic_bool trying;
static _Atomic pid_t waiter_id;
static pthread_t waiter_thread;

/* Returns once the waiter waits for the lock: by then it has nothing else to sleep for, or to spend
 * a millisecond of CPU time on. */
static void wait_until_it_waits(bool spins) {
    clockid_t clock;
    while (!atomic_load(&trying))
        usleep(100);
    check(pthread_getcpuclockid(waiter_thread, &clock));
    const uint64_t used = clock_ns(clock);
    while (spins ? clock_ns(clock) < used + NS_PER_MS : !thread_sleeps(atomic_load(&waiter_id)))
        usleep(100);
}

static void wait_for(sem_t *sem) {
    while (sem_wait(sem) != 0)
        if (errno != EINTR)
            abort();
}

static uint64_t at_least[KINDS], at_most[KINDS];

static void *holder(void *arg) {
    prctl(PR_SET_NAME, "holder");
    for (int kind = 0; kind < KINDS; kind++)
        for (int turn = 0; turn < TURNS; turn++) {
            kinds[kind].hold();
            sem_post(&held);
            wait_until_it_waits(kinds[kind].spins);
            const uint64_t start = clock_ns(CLOCK_MONOTONIC);
            usleep(HOLD_MS * 1000);
            at_least[kind] += clock_ns(CLOCK_MONOTONIC) - start;
            kinds[kind].let_go();
            wait_for(&done);
        }
    return arg;
}

static void *waiter(void *arg) {
    prctl(PR_SET_NAME, "waiter");
    atomic_store(&waiter_id, (pid_t)syscall(SYS_gettid));
    for (int kind = 0; kind < KINDS; kind++)
        for (int turn = 0; turn < TURNS; turn++) {
            wait_for(&held);
            const uint64_t start = clock_ns(CLOCK_MONOTONIC);
            atomic_store(&trying, true);
            kinds[kind].wait();
            at_most[kind] += clock_ns(CLOCK_MONOTONIC) - start;
            kinds[kind].let_go();
            atomic_store(&trying, false);
            sem_post(&done);
        }
    return arg;
}

/* --- locks that no thread waits for --- */

NOIPA static void takes_free_locks(void) {
    for (int turn = 0; turn < FREE_TURNS; turn++)
        for (int kind = 0; kind < KINDS; kind++) {
            kinds[kind].wait();
            kinds[kind].let_go();
        }
    __asm__ volatile("" : : : "memory");
}

NOIPA static void takes_own_locks(void) {
    for (int turn = 0; turn < FREE_TURNS; turn++) {
        check(pthread_mutex_lock(&lock_recursive));
        check(pthread_mutex_lock(&lock_recursive));
        check(pthread_mutex_unlock(&lock_recursive));
        check(pthread_mutex_unlock(&lock_recursive));
        check(pthread_mutex_lock(&lock_error_checking));
        check(pthread_mutex_lock(&lock_error_checking) != EDEADLK);
        check(pthread_mutex_unlock(&lock_error_checking));
        check(pthread_rwlock_wrlock(&lock_writer));
        check(pthread_rwlock_wrlock(&lock_writer) != EDEADLK);
        check(pthread_rwlock_rdlock(&lock_writer) != EDEADLK);
        check(pthread_rwlock_unlock(&lock_writer));
        check(pthread_rwlock_rdlock(&lock_reader));
        check(pthread_rwlock_rdlock(&lock_reader));
        check(pthread_rwlock_unlock(&lock_reader));
        check(pthread_rwlock_unlock(&lock_reader));
    }
    __asm__ volatile("" : : : "memory");
}

int main(void) {
    pthread_t holder_thread;
    make_locks();
    sem_init(&held, 0, 0);
    sem_init(&done, 0, 0);
    check(pthread_create(&waiter_thread, NULL, waiter, NULL));
    check(pthread_create(&holder_thread, NULL, holder, NULL));
    check(pthread_join(holder_thread, NULL));
    check(pthread_join(waiter_thread, NULL));
    takes_free_locks();
    takes_own_locks();
    for (int kind = 0; kind < KINDS; kind++)
        printf("%s 0x%lx %d %lu %lu\n", kinds[kind].name,
               (unsigned long)(uintptr_t)kinds[kind].lock, TURNS, (unsigned long)at_least[kind],
               (unsigned long)at_most[kind]);
    return 0;
}
