#include "lock_holder.h"

#include "arch_entry.h"
#include "safe_read.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>

enum {
    /* the kernel's PID_MAX_LIMIT; in a robust mutex the word may also have other values, which are
     * no ids */
    LARGEST_ID = 1 << 22,
    /* bits of a mutex's type in glibc's nptl/pthreadP.h */
    MUTEX_TYPE = 3,
    MUTEX_ROBUST = 16,
    MUTEX_PRIORITY_INHERITANCE = 32,
    MUTEX_PRIORITY_CEILING = 64,
};
static const uint32_t CEILING = 0xfff80000;

static uint32_t id_in(uint32_t word) {
    return word <= LARGEST_ID ? word : 0;
}

static uint32_t lock_word_at(const void *lock, size_t offset) {
    return *(const volatile uint32_t *)(const void *)((const char *)lock + offset);
}

/* Returns the id of the mutex's holder, from __owner. For a mutex that the kernel hands over, takes
 * it from the futex word, because the new holder sets __owner only later. */
static uint32_t holder_of_mutex(const void *lock) {
    const uint32_t kind = lock_word_at(lock, offsetof(pthread_mutex_t, __data.__kind));
    if (kind & (MUTEX_ROBUST | MUTEX_PRIORITY_INHERITANCE))
        return id_in(lock_word_at(lock, offsetof(pthread_mutex_t, __data.__lock)) & FUTEX_TID_MASK);
    return id_in(lock_word_at(lock, offsetof(pthread_mutex_t, __data.__owner)));
}

ARCH_ANY_STACK uint32_t lock_holder_here(uint32_t what, const void *lock) {
    if (wait_slot_kind(what) != WAIT_LOCK)
        return 0;
    switch (wait_slot_layout(what)) {
    case LOCK_MUTEX:
        return holder_of_mutex(lock);
    case LOCK_RWLOCK:
        return id_in(lock_word_at(lock, offsetof(pthread_rwlock_t, __data.__cur_writer)));
    case LOCK_PI_FUTEX:
        return id_in(lock_word_at(lock, 0) & FUTEX_TID_MASK);
    case LOCK_SILENT:
        break;
    }
    return 0;
}

/* Returns true if the kernel has just handed the lock to `holder`: the kernel writes the id of the
 * thread that it wakes into the word, and that thread may not have run since. A thread that really
 * waits for a lock of its own differs: it is the __owner of the mutex, and for other locks glibc
 * and the kernel refuse such a wait (EDEADLK). */
static bool is_handed_over(uint32_t what, const void *lock, uint32_t holder) {
    return wait_slot_layout(what) != LOCK_MUTEX ||
           lock_word_at(lock, offsetof(pthread_mutex_t, __data.__owner)) != holder;
}

uint32_t lock_holder(uint32_t what, uint64_t lock, uint32_t waiter) {
    union {
        pthread_mutex_t mutex;
        pthread_rwlock_t rwlock;
        uint32_t word;
    } copy;
    size_t size = sizeof copy.word;
    if (wait_slot_kind(what) != WAIT_LOCK || wait_slot_layout(what) == LOCK_SILENT)
        return 0;
    if (wait_slot_layout(what) == LOCK_MUTEX)
        size = sizeof copy.mutex;
    if (wait_slot_layout(what) == LOCK_RWLOCK)
        size = sizeof copy.rwlock;
    if (!safe_read(lock, &copy, size))
        return 0;
    const uint32_t holder = lock_holder_here(what, &copy);
    return holder == waiter && is_handed_over(what, &copy, holder) ? 0 : holder;
}

bool mutex_needs_no_wait(const void *mutex, uint32_t tid) {
    const uint32_t kind = lock_word_at(mutex, offsetof(pthread_mutex_t, __data.__kind));
    const uint32_t word = lock_word_at(mutex, offsetof(pthread_mutex_t, __data.__lock));
    const uint32_t type = kind & MUTEX_TYPE;
    if ((kind & MUTEX_PRIORITY_CEILING) && !(word & ~CEILING))
        return true;
    if ((kind & MUTEX_ROBUST) && !(word & FUTEX_TID_MASK))
        return true;
    return (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK) &&
           holder_of_mutex(mutex) == tid;
}
