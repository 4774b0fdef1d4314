/* Memory of our own: anonymous mappings that a fork()ed child sees zeroed.
 *
 * Everything that capture records lives in such mappings (MADV_WIPEONFORK, Linux 4.14), so a child
 * begins with empty tables, released locks and no samples of its parent, at no cost, even if it was
 * made by a bare clone(2) that no fork handler sees. Where the kernel refuses the advice,
 * own_memory_reset() does the same by hand in the fork handler.
 * Context: any. Async-signal-safe: yes (mmap and madvise are bare system calls).
 */
#ifndef OTELPROF_OWN_MEMORY_H
#define OTELPROF_OWN_MEMORY_H

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* `size` bytes (a multiple of the page size), zeroed, not yet backed by memory; NULL if refused.
 * errno is preserved. */
static inline void *own_memory_map(size_t size) {
    const int saved = errno;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        memory = NULL;
    else
        madvise(memory, size, MADV_WIPEONFORK);
    errno = saved;
    return memory;
}

/* Makes the memory read as zero again and gives its pages back. */
static inline void own_memory_reset(void *memory, size_t size) {
    if (memory)
        madvise(memory, size, MADV_DONTNEED);
}

#endif
