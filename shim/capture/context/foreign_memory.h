/* Reads the memory that a program's pointer leads to, on its own thread, in a signal handler.
 *
 * The pointer may be garbage, of memory that is gone, or of a file that another process cuts short;
 * reading there must not raise SIGSEGV or SIGBUS, for which the profiler has no handler: the
 * program may have one, and both kill while they are blocked, as they are here. The calling
 * thread's block of the variable's own object is there as long as the thread, and most writers that
 * keep one record for a thread keep it there; it is read in place. All else the kernel copies
 * (safe_read_here): another thread may free and unmap at any moment what this one still publishes.
 * Unloading by dlclose waits for readers (modules_hold).
 */
#ifndef OTELPROF_FOREIGN_MEMORY_H
#define OTELPROF_FOREIGN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From `low` to before `high`; empty: equal. */
struct memory_range {
    uintptr_t low;
    uintptr_t high;
};

enum { FOREIGN_COPY_BYTES = 2 + UINT8_MAX }; /* an attribute's two bytes of head, and its value */

enum foreign_filter { FILTER_UNKNOWN, FILTER_NONE, FILTER_THERE };

/* How memory is read within one sample. */
struct foreign_memory {
    struct memory_range known; /* can be read in place */
    uint8_t *room;             /* FOREIGN_COPY_BYTES */
    bool of_another;           /* the helper reads for another thread: nothing is known */
    uint8_t filter;            /* enum foreign_filter: if one is around the calling thread */
};

/* Returns true if the bytes can be read in place. Context: signal. Async-signal-safe: yes. */
bool foreign_memory_is_known(const struct foreign_memory *memory, uintptr_t address, size_t size);

/* Copies `size` bytes from `address`. Returns false if they cannot be read; what `to` then has is
 * undefined. Cost: 0.6 µs, or nothing for known memory. errno is preserved, except on the helper.
 * Context: signal. Async-signal-safe: yes. */
bool foreign_memory_copy(struct foreign_memory *memory, void *to, uintptr_t address, size_t size);

/* Returns an address at which the bytes can be read, in place or in `room`, valid until the next
 * call. NULL: they cannot be read, or are more than FOREIGN_COPY_BYTES. Context: as
 * foreign_memory_copy(). */
const void *foreign_memory_at(struct foreign_memory *memory, uintptr_t address, size_t size);

#endif
