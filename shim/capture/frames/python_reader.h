/* Reads an interpreter's memory, where any pointer may be wrong.
 *
 * Another thread may unmap a page at any moment, so the kernel copies the memory (safe_read.h):
 * whole pages if there is room for them, because neighbouring frames, and neighbouring code
 * objects, are often in one page. A thread that walks its own frames borrows the room from a pool;
 * the helper has room of its own. The copies are valid for one walk only. Addresses below 64 KiB,
 * or beyond the address space of programs, are refused without a check.
 */
#ifndef OTELPROF_PYTHON_READER_H
#define OTELPROF_PYTHON_READER_H

#include "arch_memory.h"
#include "unwind/stack_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PYTHON_PAGES = 64, /* a power of two */
    PYTHON_VIEW_BYTES = 8192,
    /* number of threads that can walk at the same moment, each for some microseconds */
    PYTHON_PAGE_SETS = 8,
};

/* Holds the pages that were copied during one walk of a thread's frames, so that one system call
 * serves all words of a page. */
struct python_pages {
    uintptr_t addresses[PYTHON_PAGES]; /* 0: the place has no page */
    uint8_t bytes[PYTHON_PAGES][ARCH_SMALLEST_PAGE_BYTES];
    uint8_t view[PYTHON_VIEW_BYTES]; /* an object that lies in more than one page */
    /* the result of safe_read_here(): whether a filter of system calls is present */
    bool is_filtered;
};

/* Holds the pool. Its memory becomes resident as it is used. */
struct python_page_sets {
    _Atomic uint32_t taken; /* one bit for each set */
    struct python_pages sets[PYTHON_PAGE_SETS];
};

struct python_reader {
    /* the helper reads for another thread, which may run at the same time */
    bool of_another;
    struct python_pages *copies; /* the pages copied in this walk; NULL: no copies are kept */
    /* the thread's own stack above its stack pointer, which can be read in place */
    struct stack_range known;
};

/* Returns an empty pool; NULL: there is no memory. Context: calm, or the helper. */
struct python_page_sets *python_page_sets_new(void);

/* Frees all sets in a forked child; `sets` may be NULL. Context: fork handler. */
void python_page_sets_after_fork(struct python_page_sets *sets);

/* Takes a set of pages for the calling thread's walk; the caller must give it back. Returns NULL if
 * all sets are in use. Context: signal. Async-signal-safe: yes. */
struct python_pages *python_page_sets_take(struct python_page_sets *sets);
void python_page_sets_give(struct python_page_sets *sets, struct python_pages *pages);

/* Copies `size` bytes (at most a few KiB) to `to`. Returns false if some of it cannot be read; the
 * content of `to` is then undefined. Context: signal; with of_another, the helper.
 * Async-signal-safe: yes. Cost: 2 ns, and 0.6 µs for a page that was not copied yet. */
bool python_read(struct python_reader *reader, uintptr_t address, void *to, size_t size);

/* Returns a copy of at most PYTHON_VIEW_BYTES, valid until the next call with the same reader;
 * NULL: the memory cannot be read, or the reader keeps no copies. Context: as python_read(). */
const uint8_t *python_view(struct python_reader *reader, uintptr_t address, size_t size);

/* Reads an aligned pointer or Py_ssize_t. Context: as python_read(). */
bool python_read_word(struct python_reader *reader, uintptr_t address, uintptr_t *value);

/* Drops the copied pages. Must be called before each walk, because the memory may have changed.
 * Context: any. */
void python_pages_forget(struct python_pages *pages);

#endif
