/* Reads an interpreter's memory, where any pointer may be wrong.
 *
 * Another thread may unmap a page at any moment, so the kernel copies the memory (safe_read.h):
 * whole pages if there is room for them, because neighbouring frames, and neighbouring code
 * objects, are often in one page. A thread that walks its own frames borrows the room from a pool;
 * the helper has room of its own. The copies are valid for one walk only. Addresses below 64 KiB,
 * or beyond the address space of programs, are refused without a check.
 *
 * Most walks of a thread read the same memory as its walk before: the frames and the code objects
 * of the outer functions stay. So the pool remembers the parts of pages that each walk has read,
 * and the next walk begins by copying them all in one system call. Only new memory costs another
 * call.
 */
#ifndef OTELPROF_PYTHON_READER_H
#define OTELPROF_PYTHON_READER_H

#include "arch_memory.h"
#include "unwind/stack_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    PYTHON_PAGES = 128,  /* 60 functions lie in 100 pages */
    PYTHON_PLACES = 256, /* a power of two, at least twice as many */
    PYTHON_VIEW_BYTES = 8192,
    /* number of threads that can walk at the same moment, each for some microseconds */
    PYTHON_PAGE_SETS = 8,
    /* number of threads whose last walks are remembered; of two threads with one place, each has
     * its pages copied one by one after a walk of the other */
    PYTHON_LAST_WALKS = 256,
    PYTHON_AHEAD_BYTES = 64 << 10, /* at most so many bytes of the walk before are copied at once */
};

/* Lists the memory that a walk has read: addresses of pages, each with the numbers of the first and
 * the last of its 64 parts in the lowest bits; 0 ends the list. Several threads may write here,
 * because a word is right by itself. */
struct python_last_walk {
    _Atomic uint32_t tid; /* the thread that has walked */
    _Atomic uint64_t pages[PYTHON_PAGES];
};

/* Describes a copied page. The 64 parts of a page are bits of a word. */
struct python_page {
    uintptr_t address;
    const uint8_t *copy; /* where the copy of the page's first byte would be */
    /* parts that the walk before has read; 0: none, or this walk has copied the page itself */
    uint64_t expected;
    uint64_t copied; /* parts that the copy has */
    uint64_t read;   /* parts that the walk has read */
};

/* Holds the pages that were copied during one walk of a thread's frames, so that one system call
 * serves all words of a page. */
struct python_pages {
    uint8_t places[PYTHON_PLACES]; /* by address: 1 + the place in `pages`; 0: none */
    uint32_t count;
    uint32_t tid; /* the thread that walks */
    /* the result of seccomp_is_filtered(): a filter of system calls is present */
    bool is_filtered;
    struct python_page pages[PYTHON_PAGES];
    struct iovec ranges[PYTHON_PAGES]; /* ranges that the first call of a walk copies */
    _Alignas(ARCH_SMALLEST_PAGE_BYTES) uint8_t ahead[PYTHON_AHEAD_BYTES]; /* its copies */
    uint8_t bytes[PYTHON_PAGES][ARCH_SMALLEST_PAGE_BYTES];
    uint8_t view[PYTHON_VIEW_BYTES]; /* an object that lies in more than one page */
};

/* Holds the pool. Its memory becomes resident as it is used. */
struct python_page_sets {
    _Atomic uint32_t taken; /* one bit for each set */
    struct python_pages sets[PYTHON_PAGE_SETS];
    struct python_last_walk last[PYTHON_LAST_WALKS];
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

/* Takes a set of pages for the calling thread's walk. Copies into it the memory that the thread's
 * last walk has read, unless a filter of system calls is present. The caller must give the set
 * back. `tid`: the calling thread's id. Returns NULL if all sets are in use, or if `sets` is NULL.
 * Context: signal. Async-signal-safe: yes. */
struct python_pages *python_page_sets_take(struct python_page_sets *sets, uint32_t tid);

/* Gives a set back, and remembers the memory that the walk has read. `pages` may be NULL. Context:
 * as python_page_sets_take(). */
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
