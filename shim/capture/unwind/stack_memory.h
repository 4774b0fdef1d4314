/* Reading the stack of an interrupted thread without ever touching memory that is not there.
 *
 * Readable memory is known in two ways. The thread's own stack and its alternate signal stack have
 * known ends: everything between the stack pointer and the end is mapped. Any other stack (a
 * fibre's, one made by makecontext) is unknown, not even that there is one: a smashed frame
 * leaves a stack pointer to nowhere, which the program's handler of SIGSEGV may report. Each page
 * is asked of the kernel once, by having it copy eight bytes from there: no SIGSEGV handler of the
 * profiler, no pipe, no descriptor. Of another thread's stack a copy is read, whose ends are known.
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

/* The part of one stack that a walk may still read. */
struct stack_view {
    uintptr_t low;      /* follows the stack pointer upwards */
    uintptr_t high;     /* UINTPTR_MAX: the end is not known */
    uintptr_t page;     /* then: the page last found to be readable; NO_PAGE at first */
    uintptr_t moved_by; /* offset of the copy from the stack that it was made of */
};

enum {
    NO_PAGE = 1,           /* an address at which no page begins */
    LOWEST_MAPPED = 65536, /* vm.mmap_min_addr: nothing is mapped below */
};

/* Returns true if the page of `address` can be read. One system call that changes nothing, about
 * 0.1 µs; errno is preserved. Context: any. Async-signal-safe: yes. */
bool memory_is_readable(uintptr_t address);

/* Returns true if a range of at most a page can be read: the pages of its first and last byte.
 * Otherwise as memory_is_readable(). */
static inline bool memory_range_is_readable(uintptr_t address, size_t bytes) {
    return memory_is_readable(address) && memory_is_readable(address + bytes - 1);
}

/* Return a view of a stack whose end is known, and of one whose end is not. */
static inline struct stack_view stack_view_known(uintptr_t low, uintptr_t high) {
    return (struct stack_view){.low = low, .high = high};
}
static inline struct stack_view stack_view_unknown(uintptr_t low) {
    return (struct stack_view){.low = low, .high = UINTPTR_MAX, .page = NO_PAGE};
}

/* Reads one aligned word; false: it is outside the view. Context: any. Async-signal-safe: yes. */
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
