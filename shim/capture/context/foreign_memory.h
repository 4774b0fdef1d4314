/* Reads the memory that a program's pointer leads to, on its own thread, in a signal handler.
 *
 * The pointer may be garbage, or of memory that is gone; reading there must not raise SIGSEGV, for
 * which the profiler has no handler: the program may have one, and SIGSEGV kills while it is
 * blocked, as it is here. So nothing is read before it is known to be mapped. The calling thread's
 * block of the variable's own object is: static TLS is there as long as the thread, and most
 * writers that keep one record for a thread keep it there; what lies in it costs no more than the
 * reading. For anything else the kernel is asked, once for each page and each sample
 * (memory_is_readable: a call that changes nothing and that every sandbox allows). To remember
 * pages from one sample to the next would be wrong: libc gives back memory that was freed (free, a
 * stack that ended) by calls that no hook sees, and a stale pointer into it does a program no harm
 * until the profiler follows it. Nothing but another thread can take memory away between the
 * question and the reading, some ten nanoseconds later: one that frees what this thread still
 * publishes. Unloading by dlclose waits for readers (modules_hold).
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

enum { FOREIGN_COPY_BYTES = 2048 };

/* Readable memory known within one sample. */
struct foreign_memory {
    struct memory_range known; /* can be read */
    struct memory_range asked; /* whole pages: the kernel has read there, just now */
    /* FOREIGN_COPY_BYTES of room for memory of another thread, on the helper: it may be unmapped
     * between check and read, so the kernel copies all of it. NULL: the calling thread's. */
    uint8_t *room;
};

/* Returns true if the `size` bytes from `address` on can be read; the caller must read them at
 * once. At most `size` / page + 2 system calls; none in known memory. errno is preserved. Context:
 * signal. Async-signal-safe: yes. */
bool foreign_memory_has(struct foreign_memory *memory, uintptr_t address, size_t size);

/* Copies `size` bytes from `address`. Returns false, and writes nothing, if they cannot be read.
 * Context: as foreign_memory_has(). */
bool foreign_memory_copy(struct foreign_memory *memory, void *to, uintptr_t address, size_t size);

/* Returns an address at which the bytes can be read, in place or in `room`, valid until the next
 * call. NULL: they cannot be read, or are more than FOREIGN_COPY_BYTES. Context: as
 * foreign_memory_has(). */
const void *foreign_memory_at(struct foreign_memory *memory, uintptr_t address, size_t size);

#endif
