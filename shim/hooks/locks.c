/* Hooks calls that take a lock (lock_calls.def): libc's function takes a free lock directly;
 * wait/contention.h measures the wait for a taken lock.
 *
 * A hook reads the lock, and jumps to libc's function if the lock is free: so far it has no frame
 * and no state, and uses no thread-local variable. So it may be called anywhere: in an allocator,
 * before a thread has profiler state, by a signal handler, in a child of vfork. It tries no lock
 * that the program did not ask to try, except spin locks, whose waiters have no order. Like
 * blocking.c, this file is compiled without vector registers. */
#include "arch_caller.h"
#include "capture/binding/bound_calls.h"
#include "capture/capture.h"
#include "capture/symbols/next_symbol.h"
#include "capture/wait/contention.h"
#include "capture/wait/lock_holder.h"
#include "hooks.h"

#include <pthread.h>
#include <threads.h>
#include <time.h>

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

/* --- is the lock taken? ---
 *
 * The value may be stale when the call is made. Then a wait is missed, or a call that does not wait
 * is measured; neither changes the effect of the call. */

static inline uint32_t lock_word_load(const uint32_t *word) {
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* Returns true if a mutex is taken: a pthread_mutex_t, or an mtx_t, which glibc builds on it; 0 is
 * free. */
static inline bool mutex_is_taken(const void *lock) {
    const pthread_mutex_t *const mutex = lock;
    return lock_word_load((const uint32_t *)&mutex->__data.__lock) != 0;
}

/* Lists the low bits of __readers, above which readers are counted (glibc's
 * pthread_rwlock_common.c, since 2.25). */
enum { WRITERS_PHASE = 1, HAS_WRITER = 2, READERS_WAIT = 4 };

static inline bool rwlock_is_written(const void *lock) {
    const pthread_rwlock_t *const rwlock = lock;
    const uint32_t readers = lock_word_load(&rwlock->__data.__readers);
    if (LIKELY(!(readers & HAS_WRITER)))
        return false;
    return (readers & WRITERS_PHASE) ||
           rwlock->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

static inline bool rwlock_is_taken(const void *lock) {
    const pthread_rwlock_t *const rwlock = lock;
    const uint32_t readers = lock_word_load(&rwlock->__data.__readers);
    return (readers & ~(uint32_t)(WRITERS_PHASE | READERS_WAIT)) != 0;
}

/* Returns true if the call returns at once although the lock is taken. */
static bool needs_no_wait(enum lock_layout layout, const void *lock, uint32_t tid) {
    switch (layout) {
    case LOCK_MUTEX:
        return mutex_needs_no_wait(lock, tid);
    case LOCK_RWLOCK: /* such a call is refused with EDEADLK */
        return lock_holder_here(WAIT_LOCK | LOCK_RWLOCK, lock) == tid;
    case LOCK_PI_FUTEX:
    case LOCK_SILENT:
        break;
    }
    return false;
}

static bool is_measured(enum lock_layout layout, const void *lock) {
    const struct thread_state *const thread = profiler_tls.thread;
    return thread && atomic_load_explicit(&capture.armed, memory_order_relaxed) &&
           !needs_no_wait(layout, lock, atomic_load_explicit(&thread->tid, memory_order_relaxed));
}

/* --- the hooks --- */

/* Holds the next definitions of these functions. */
IN_BOUND_CALLS static struct {
#define LOCK(layout, is_taken, name, parameters, arguments) int(*name) parameters;
#define SPIN_LOCK(layout, try, name, parameters, arguments)                                        \
    int(*name) parameters;                                                                         \
    int(*try) parameters;
#include "lock_calls.def"
} next_locks;

#define LOCK(layout, is_taken, name, parameters, arguments)                                        \
    __attribute__((noinline, cold)) static int wait_##name parameters {                            \
        const struct hook_caller caller = ARCH_CALLER(__builtin_frame_address(0));                 \
        const void *const address = (const void *)(uintptr_t)lock;                                 \
        if (!is_measured(layout, address))                                                         \
            return next_locks.name arguments;                                                      \
        const struct contention contention =                                                       \
            contention_begin(&capture.recorder, &caller, WAIT_LOCK | layout, address);             \
        const int result = next_locks.name arguments;                                              \
        contention_end(&capture.recorder, &contention);                                            \
        return result;                                                                             \
    }
#include "lock_calls.def"

#define LOCK(layout, is_taken, name, parameters, arguments)                                        \
    static int lock_##name parameters {                                                            \
        if (LIKELY(!is_taken(lock)))                                                               \
            return next_locks.name arguments;                                                      \
        return wait_##name arguments;                                                              \
    }
#define SPIN_LOCK(layout, try, name, parameters, arguments)                                        \
    static int lock_##name parameters {                                                            \
        if (LIKELY(next_locks.try arguments == 0))                                                 \
            return 0;                                                                              \
        return wait_##name arguments;                                                              \
    }
#include "lock_calls.def"

/* --- the table --- */

void hooks_locks_add(void) {
    struct symbol spin_try = {.name = "pthread_spin_trylock"};
    next_symbols(&spin_try, 1);
    const bool can_try =
        spin_try.address &&
        bound_calls_write((void **)(void *)&next_locks.pthread_spin_trylock, spin_try.address);
    contention_start();
#define LOCK(layout, is_taken, name, parameters, arguments)                                        \
    bound_calls_add(#name, (void *)lock_##name, (void **)(void *)&next_locks.name);
#define SPIN_LOCK(layout, try, name, parameters, arguments)                                        \
    if (can_try)                                                                                   \
        bound_calls_add(#name, (void *)lock_##name, (void **)(void *)&next_locks.name);
#include "lock_calls.def"
}
