/* Reading an interpreter's memory where any pointer may be wrong.
 *
 * On the thread that was interrupted the kernel is asked about each page once, before it is read
 * (stack_memory.h); some are remembered for one walk, and no longer. Of another thread, on the
 * helper, where memory may go between question and reading, the kernel copies: whole pages, if
 * there is room for them. Frames lie beside one another, and so do code objects and what they refer
 * to.
 * Memory below 64 KiB, or beyond the address space of programs, is not checked.
 */
#ifndef OTELPROF_PYTHON_READER_H
#define OTELPROF_PYTHON_READER_H

#include "arch_memory.h"
#include "unwind/stack_memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PYTHON_READER_PAGES = 16, PYTHON_PAGES = 64 }; /* powers of two */

/* Pages as the helper has copied them for one walk of another thread's frames: each is asked of the
 * kernel once, not each word of it. */
struct python_pages {
    uintptr_t addresses[PYTHON_PAGES]; /* 0: none is there */
    uint8_t bytes[PYTHON_PAGES][ARCH_SMALLEST_PAGE_BYTES];
};

struct python_reader {
    bool of_another;             /* on the helper: of a thread that may run */
    struct python_pages *copies; /* then: what was copied in this walk; NULL: nothing is kept */
    struct stack_range known;    /* the thread's own stack, above its stack pointer: can be read */
    uintptr_t pages[PYTHON_READER_PAGES]; /* asked in this walk, each in its place; 0: none */
};

/* Copies `size` bytes (at most a few KiB) to `to`. false: some of it cannot be read, and what is
 * at `to` counts for nothing. Context: signal; with of_another, the helper. Async-signal-safe:
 * yes. Cost: 2 ns, and 0.1 µs for a page not asked about yet. */
bool python_read(struct python_reader *reader, uintptr_t address, void *to, size_t size);

/* Returns true if `size` bytes can be read in place, until the end of this walk. Not for use with
 * of_another. Context: signal. Async-signal-safe: yes. */
bool python_is_readable(struct python_reader *reader, uintptr_t address, size_t size);

/* An aligned pointer or Py_ssize_t. Context: as above. */
bool python_read_word(struct python_reader *reader, uintptr_t address, uintptr_t *value);

/* Before each walk: what was copied is of the past. Context: the helper. */
void python_pages_forget(struct python_pages *pages);

/* Reads by way of the pages. false: some of it cannot be read. Context: the helper. */
bool python_pages_read(struct python_pages *pages, uintptr_t address, void *to, size_t size);

#endif
