/* Reading an interpreter's memory where any pointer may be wrong.
 *
 * On the thread that was interrupted the kernel is asked about each page once, before it is read
 * (stack_memory.h); some are remembered for one walk, and no longer. Of another thread, on the
 * helper, where memory may go between question and reading, the kernel copies: whole pages, if
 * there is room for them (python_pages.h).
 * Memory below 64 KiB, or beyond the address space of programs, is not checked.
 */
#ifndef OTELPROF_PYTHON_READER_H
#define OTELPROF_PYTHON_READER_H

#include "python_pages.h"
#include "unwind/stack_memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PYTHON_READER_PAGES = 16 }; /* a power of two */

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

#endif
