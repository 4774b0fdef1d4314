/* Makes tables in the profiler's memory writable in steps, as they are used.
 *
 * Under vm.overcommit_memory=2 the kernel charges a private mapping as a whole when it becomes
 * writable, whether it is touched or not (and ignores MAP_NORESERVE); RLIMIT_DATA counts likewise.
 * So a table is mapped read-only, which costs nothing and reads as zero, and a writer opens the
 * steps that it writes to. A step stays open. A table has at most 64 steps, and so at most 64
 * mappings; the kernel joins open neighbours.
 *
 * All such memory together has a bound. It is fixed at first; later the helper sets it to a part of
 * what memory limits leave (stepped_memory_allow). Beyond the bound no step is opened, and the
 * caller counts its sample as dropped. Context: any. Async-signal-safe: yes (mprotect is a bare
 * system call). */
#ifndef OTELPROF_STEPPED_MEMORY_H
#define OTELPROF_STEPPED_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STEPPED_FIRST_BYTES = 24 << 20 }; /* the bound until a limit has been read */

struct stepped_memory {
    char *start; /* NULL: the table is not mapped */
    char *end;
    uint32_t step_shift;
    _Atomic uint64_t opened; /* one bit for each open step */
};

/* Maps the table, zeroed in a forked child, all steps closed. Returns NULL if refused. Context:
 * calm. */
void *stepped_memory_map(struct stepped_memory *memory, size_t size);

/* Opens the steps of `wanted` that are still closed, for stepped_memory_open(): one system call for
 * each. */
bool stepped_memory_open_steps(struct stepped_memory *memory, uint64_t wanted);

/* Makes that part of the table writable. Returns false if the kernel or the bound refuses it. */
static inline bool stepped_memory_open(struct stepped_memory *memory, const void *from,
                                       size_t bytes) {
    const size_t at = (size_t)((const char *)from - memory->start);
    const uint32_t first = (uint32_t)(at >> memory->step_shift);
    const uint32_t last = (uint32_t)((at + bytes - 1) >> memory->step_shift);
    const uint64_t wanted = (UINT64_MAX >> (63 - last)) & (UINT64_MAX << first);
    const uint64_t opened = atomic_load_explicit(&memory->opened, memory_order_relaxed);
    return (wanted & ~opened) == 0 || stepped_memory_open_steps(memory, wanted);
}

/* Counts memory that is about to be used. Returns false if the sum would exceed the bound. */
bool stepped_memory_charge(size_t bytes);

/* Takes back a charge: the memory is not used after all, or not any more. */
void stepped_memory_discharge(size_t bytes);

/* Sets the bound to the memory in use plus a quarter of `room`, the memory that limits leave to the
 * process. UINT64_MAX: there is no limit. Context: the helper. */
void stepped_memory_allow(uint64_t room);

#endif
