/* Reads an interpreter's memory, where any pointer may be wrong.
 *
 * In the interrupted thread, the kernel checks each page once before it is read (stack_memory.h);
 * the results are cached for one walk only. For another thread, on the helper, a page may be
 * unmapped between check and read, so the kernel copies the memory: whole pages if there is room,
 * because frames lie beside one another, and so do code objects and the objects that they refer to.
 * Addresses below 64 KiB, or beyond the address space of programs, are refused without a check.
 */
#ifndef OTELPROF_PYTHON_READER_H
#define OTELPROF_PYTHON_READER_H

#include "arch_memory.h"
#include "unwind/stack_memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PYTHON_READER_PAGES = 16, PYTHON_PAGES = 64 }; /* powers of two */

/* Holds the pages that the helper has copied during one walk of another thread's frames, so that
 * one system call serves all words of a page. */
struct python_pages {
    uintptr_t addresses[PYTHON_PAGES]; /* 0: none is there */
    uint8_t bytes[PYTHON_PAGES][ARCH_SMALLEST_PAGE_BYTES];
};

struct python_reader {
    bool of_another;             /* the helper reads for another thread, which may run meanwhile */
    struct python_pages *copies; /* if of_another: pages copied in this walk; NULL: none is kept */
    struct stack_range known;    /* the thread's own stack, above its stack pointer: can be read */
    uintptr_t pages[PYTHON_READER_PAGES]; /* checked in this walk, each at its hash; 0: empty */
};

/* Copies `size` bytes (at most a few KiB) to `to`. Returns false if some of it cannot be read; the
 * content of `to` is then undefined. Context: signal; with of_another, the helper.
 * Async-signal-safe: yes. Cost: 2 ns, and 0.1 µs for a page that was not checked yet. */
bool python_read(struct python_reader *reader, uintptr_t address, void *to, size_t size);

/* Returns true if `size` bytes can be read in place, until the end of this walk. Not for use with
 * of_another. Context: signal. Async-signal-safe: yes. */
bool python_is_readable(struct python_reader *reader, uintptr_t address, size_t size);

/* Reads an aligned pointer or Py_ssize_t. Context: as python_read(). */
bool python_read_word(struct python_reader *reader, uintptr_t address, uintptr_t *value);

/* Drops the copied pages. Call before each walk, because their memory may have changed. Context:
 * the helper. */
void python_pages_forget(struct python_pages *pages);

/* Reads through the copied pages. Returns false if some of it cannot be read. Context: the helper.
 */
bool python_pages_read(struct python_pages *pages, uintptr_t address, void *to, size_t size);

#endif
