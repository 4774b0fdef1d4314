/* Who holds a lock, as its own memory says.
 *
 * Locks that know their owner keep the thread's id in a word of theirs: a mutex of glibc's in
 * __owner, a read-write lock in __cur_writer, a futex with priority inheritance in the word itself,
 * which the kernel prescribes (futex(2)). Where these words are in glibc's types is a part of its
 * binary interface: programs initialize them statically (sysdeps/nptl/bits/thread-shared-types.h,
 * struct_mutex.h, struct_rwlock.h; on 64-bit machines since 2.25). Readers are not written down.
 */
#ifndef OTELPROF_LOCK_HOLDER_H
#define OTELPROF_LOCK_HOLDER_H

#include "record/parked.h"

#include <stdbool.h>
#include <stdint.h>

/* The id of the thread that holds the lock at `lock`, for which the thread `waiter` waits; 0:
 * nobody does, or it is not known. It may be a thread of another process, where the lock is in
 * shared memory, and `waiter` itself, if that waits for what it holds already; a lock that the
 * kernel has just handed to `waiter` is nobody's. `what` is a slot's kind; of anything but a lock
 * nobody is the holder. The memory may be gone. errno is changed. Context: the helper. */
uint32_t lock_holder(uint32_t what, uint64_t lock, uint32_t waiter);

/* Returns the holder, whichever thread waits, of a lock in memory that can be read. Context: any. Async-signal-safe: yes. */
uint32_t lock_holder_here(uint32_t what, const void *lock);

/* Whether a mutex whose word is not 0 is given to the calling thread, `tid`, or refused, without a
 * wait: it has it already, and the mutex counts or complains; or the word holds something else
 * beside (a priority ceiling, the mark that the owner has died). Context: any. Async-signal-safe:
 * yes. */
bool mutex_needs_no_wait(const void *mutex, uint32_t tid);

#endif
