/* Reads the holder of a lock from the lock's own memory.
 *
 * Locks with an owner keep the thread's id in one of their words: a mutex of glibc in __owner, a
 * read-write lock in __cur_writer, a futex with priority inheritance in the word itself, as the
 * kernel prescribes (futex(2)). The offsets of these words in glibc's types are part of its binary
 * interface, because programs initialize the types statically
 * (sysdeps/nptl/bits/thread-shared-types.h, struct_mutex.h, struct_rwlock.h; on 64-bit machines
 * since 2.25). Locks do not record their readers.
 */
#ifndef OTELPROF_LOCK_HOLDER_H
#define OTELPROF_LOCK_HOLDER_H

#include "record/wait_slot.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns the id of the thread that holds the lock at `lock`, for which the thread `waiter` waits;
 * 0: no thread holds it, or the holder is not known. The holder may belong to another process, if
 * the lock is in shared memory. The holder is `waiter` itself if that thread waits for a lock that
 * it already holds; but a lock that the kernel has just handed to `waiter` has no holder. `what` is
 * a slot's kind; only locks have a holder. The memory may be unmapped. errno is changed. Context:
 * the helper. */
uint32_t lock_holder(uint32_t what, uint64_t lock, uint32_t waiter);

/* Returns the holder that a lock in readable memory has, whichever thread waits for it; 0: none.
 * Context: any. Async-signal-safe: yes. */
uint32_t lock_holder_here(uint32_t what, const void *lock);

/* Returns true if locking a mutex whose word is not 0 does not wait. Either the calling thread,
 * `tid`, holds it already (the lock then counts, or fails), or the word has no plain id (it has a
 * priority ceiling, or the mark of an owner that has died). Context: any. Async-signal-safe:
 * yes. */
bool mutex_needs_no_wait(const void *mutex, uint32_t tid);

#endif
