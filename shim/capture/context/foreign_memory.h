/* Reads memory at a pointer of the program's, on the program's thread, in a signal handler.
 *
 * The pointer may be garbage, or lead to memory that is unmapped or to a file that another process
 * truncates. Reading there must not raise SIGSEGV or SIGBUS: the handler blocks both, and a blocked
 * one kills the process. The thread's TLS block of the variable's own object lives as long as the
 * thread, so it is read in place; most writers that keep one record for a thread keep it there. The
 * kernel copies all other memory (safe_read_here), because another thread may unmap the memory that
 * this thread publishes at any moment. Unloading by dlclose waits for readers (modules_hold).
 */
#ifndef OTELPROF_FOREIGN_MEMORY_H
#define OTELPROF_FOREIGN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Holds the addresses from `low` to before `high`; empty if the two are equal. */
struct memory_range {
    uintptr_t low;
    uintptr_t high;
};

enum { FOREIGN_COPY_BYTES = 2 + UINT8_MAX }; /* an attribute's two bytes of head, and its value */

enum foreign_filter { FILTER_UNKNOWN, FILTER_NONE, FILTER_THERE };

/* Says how memory is read within one sample. */
struct foreign_memory {
    struct memory_range known; /* memory that can be read in place */
    uint8_t *room;             /* a buffer of FOREIGN_COPY_BYTES for copies */
    bool of_another;           /* the helper reads for another thread, so no memory is known */
    /* enum foreign_filter: whether the calling thread has a filter of system calls */
    uint8_t filter;
};

/* Returns true if the bytes can be read in place. Context: signal. Async-signal-safe: yes. */
bool foreign_memory_is_known(const struct foreign_memory *memory, uintptr_t address, size_t size);

/* Copies `size` bytes from `address`. Returns false if they cannot be read; the content of `to` is
 * then undefined. Cost: 0.6 µs, or nothing for known memory. errno is preserved, except on the
 * helper. Context: signal. Async-signal-safe: yes. */
bool foreign_memory_copy(struct foreign_memory *memory, void *to, uintptr_t address, size_t size);

/* Returns an address at which the bytes can be read, in place or in `room`, valid until the next
 * call. NULL: they cannot be read, or are more than FOREIGN_COPY_BYTES. Context: as
 * foreign_memory_copy(). */
const void *foreign_memory_at(struct foreign_memory *memory, uintptr_t address, size_t size);

#endif
