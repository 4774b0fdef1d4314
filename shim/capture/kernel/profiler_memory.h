/* Maps the profiler's own memory: anonymous mappings that a fork()ed child sees zeroed.
 *
 * All of capture's records are in such mappings (MADV_WIPEONFORK, Linux 4.14). So a child begins
 * with empty tables, released locks and no samples of its parent, at no cost, even a child of a
 * bare clone(2) that no fork handler sees. If the kernel refuses the advice, or an emulator ignores
 * it, profiler_memory_reset_in_child() zeroes the memory in the fork handler. Core dumps leave this
 * memory out: it describes the profiler, not the program, and would make dumps of a few MiB ten
 * times as large. Tables that every process needs are mapped at its start in one piece, because
 * each mapping takes four calls, and a fork must copy it. Context: any. Async-signal-safe: yes
 * (mmap and madvise are bare system calls).
 */
#ifndef OTELPROF_PROFILER_MEMORY_H
#define OTELPROF_PROFILER_MEMORY_H

#include "arch_memory.h"
#include "bare_syscall.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* Rounds up to whole pages of any kernel. */
static inline size_t whole_pages(size_t bytes) {
    return (bytes + ARCH_LARGEST_PAGE_BYTES - 1) & -(size_t)ARCH_LARGEST_PAGE_BYTES;
}

/* Maps `size` bytes of addresses, with that protection; NULL if refused. Makes the bare system
 * call, because we export mmap and munmap (hooks/mmap.c). errno is preserved. */
static inline void *profiler_memory_addresses(size_t size, int protection) {
    const int saved = errno;
    void *const memory = (void *)syscall(SYS_mmap, NULL, size, protection,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    errno = saved;
    return memory == MAP_FAILED ? NULL : memory;
}

/* Maps memory as profiler_memory_addresses() does, in small pages alone, and leaves it out of core
 * dumps. With transparent_hugepage=always, huge pages would add 8 MiB to a program of ten threads,
 * because accesses to tables are scattered, and a sample would wait while the kernel zeroes 2
 * MiB. */
static inline void *profiler_memory_with(size_t size, int protection) {
    const int saved = errno;
    void *const memory = profiler_memory_addresses(size, protection);
    if (memory) {
        madvise(memory, size, MADV_NOHUGEPAGE);
        madvise(memory, size, MADV_DONTDUMP);
    }
    errno = saved;
    return memory;
}

/* Maps `size` bytes (a multiple of the page size), zeroed and not yet backed by memory; NULL if
 * refused. A forked child sees this memory unchanged. */
static inline void *profiler_memory_take(size_t size) {
    return profiler_memory_with(size, PROT_READ | PROT_WRITE);
}

/* Maps memory as profiler_memory_take() does, and shares it with children that are forked later.
 * The kernel promises this memory now, if it counts promises: no later access fails. */
static inline void *profiler_memory_share(size_t size) {
    const int saved = errno;
    void *const memory = (void *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0L);
    if (memory != MAP_FAILED) {
        madvise(memory, size, MADV_NOHUGEPAGE); /* shmem_enabled may say otherwise */
        madvise(memory, size, MADV_DONTDUMP);
    }
    errno = saved;
    return memory == MAP_FAILED ? NULL : memory;
}

/* Maps memory as profiler_memory_take() does, but a forked child sees it zeroed. */
void *profiler_memory_map(size_t size);

/* Maps memory as profiler_memory_map() does, never to be unmapped: returns part of the memory
 * mapped ahead, if enough of it is left. */
void *profiler_memory_part(size_t size);

/* Maps memory as profiler_memory_part() does, but read-only (stepped_memory.h). */
void *profiler_memory_closed_part(size_t size);

/* Maps so many bytes for the calls of profiler_memory_part() that follow, and for those of
 * profiler_memory_closed_part(); if the kernel refuses that, each of these calls maps memory of its
 * own. Context: calm, once. */
void profiler_memory_map_ahead(size_t writable, size_t closed);

static inline void profiler_memory_unmap(void *memory, size_t size) {
    const int saved = errno;
    syscall(SYS_munmap, memory, size);
    errno = saved;
}

/* Reserves a range of addresses without access, whatever its size. */
static inline void *profiler_memory_reserve(size_t size) {
    return profiler_memory_with(size, PROT_NONE);
}

/* Backs a part of a reserved range by zeroed memory. Returns false if refused. */
static inline bool profiler_memory_open(void *memory, size_t size) {
    const int saved = errno;
    const bool opened =
        bare_syscall(SYS_mprotect, (long)memory, (long)size, PROT_READ | PROT_WRITE, 0, 0, 0) == 0;
    errno = saved;
    return opened;
}

/* Discards the contents, and returns the pages to the kernel: the memory reads as zero. Returns
 * false, without a change, if refused. */
static inline bool profiler_memory_drop(void *memory, size_t size) {
    const int saved = errno;
    const bool dropped = madvise(memory, size, MADV_DONTNEED) == 0;
    errno = saved;
    return dropped;
}

/* Makes the memory read as zero again and gives its pages back. `memory` may be NULL. */
static inline void profiler_memory_reset(void *memory, size_t size) {
    if (memory)
        madvise(memory, size, MADV_DONTNEED);
}

/* Records in a forked child, before anything else, whether the kernel has emptied the profiler's
 * memory. `is_empty`: the kernel has emptied the part that the caller has checked; then it has
 * emptied all parts, unless it had refused MADV_WIPEONFORK for one. Context: fork handler. */
void profiler_memory_after_fork(bool is_empty);

/* Returns whether the kernel has emptied the memory. Context: fork handler. */
bool profiler_memory_is_emptied(void);

/* Calls profiler_memory_reset(), unless the kernel has emptied the memory. Context: fork
 * handler. */
void profiler_memory_reset_in_child(void *memory, size_t size);

#endif
