/* Reads the stack of an interrupted thread, and never touches memory that is not mapped.
 *
 * Readable memory is known in two ways. The thread's own stack and its alternate signal stack have
 * known ends: everything between the stack pointer and the end is mapped. Any other stack (a
 * fibre's, one made by makecontext) has unknown ends, and may not even exist: a smashed frame
 * leaves a stack pointer to unmapped memory, which the program's handler of SIGSEGV may report.
 * There the kernel is queried once for each page: it copies eight bytes from the page. This needs
 * no SIGSEGV handler of the profiler, no pipe, no descriptor. Another thread's stack is read in a
 * copy, whose ends are known.
 */
#ifndef OTELPROF_STACK_MEMORY_H
#define OTELPROF_STACK_MEMORY_H

#include "arch_memory.h"

#include <stdbool.h>
#include <stdint.h>

struct stack_range {
    uintptr_t low;
    uintptr_t high; /* one past the last byte that may be read */
};

static inline bool stack_range_has(struct stack_range range, uintptr_t address) {
    return address >= range.low && address < range.high;
}

/* Bounds the part of one stack that a walk may still read. */
struct stack_view {
    uintptr_t low;  /* lowest address; rises with the stack pointer */
    uintptr_t high; /* UINTPTR_MAX: the upper end is not known */
    /* if the end is not known: address of the page last found to be readable; NO_PAGE at first */
    uintptr_t page;
    uintptr_t moved_by; /* offset of the copy from the original stack */
};

enum {
    NO_PAGE = 1,           /* a value that is no page's address */
    LOWEST_MAPPED = 65536, /* vm.mmap_min_addr: no page below is mapped */
};

/* Returns true if the page of `address` can be read. Makes one system call, which changes no
 * memory; about 0.1 µs. errno is preserved. Context: any. Async-signal-safe: yes. */
bool memory_is_readable(uintptr_t address);

/* Returns true if a range of at most a page can be read, by the pages of its first and last byte.
 * Cost: two calls of memory_is_readable(). Context: as memory_is_readable(). */
static inline bool memory_range_is_readable(uintptr_t address, size_t bytes) {
    return memory_is_readable(address) && memory_is_readable(address + bytes - 1);
}

/* Returns a view of a stack with known ends. */
static inline struct stack_view stack_view_known(uintptr_t low, uintptr_t high) {
    return (struct stack_view){.low = low, .high = high};
}
static inline struct stack_view stack_view_unknown(uintptr_t low) {
    return (struct stack_view){.low = low, .high = UINTPTR_MAX, .page = NO_PAGE};
}

/* Reads one word. Returns false if the address is not aligned, or is outside the view, or cannot be
 * read. Context: any. Async-signal-safe: yes. */
static inline bool stack_view_read(struct stack_view *view, uintptr_t address, uintptr_t *value) {
    if (address < view->low || address > view->high - sizeof *value || (address & 7))
        return false;
    if (view->high == UINTPTR_MAX &&
        (address & -(uintptr_t)ARCH_SMALLEST_PAGE_BYTES) != view->page) {
        if (!memory_is_readable(address))
            return false;
        view->page = address & -(uintptr_t)ARCH_SMALLEST_PAGE_BYTES;
    }
    *value = *(const volatile uintptr_t *)(address + view->moved_by);
    return true;
}

#endif
