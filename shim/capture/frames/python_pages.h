/* Pages of the interpreter's memory as the helper has copied them for one walk of another thread's
 * frames: each is asked of the kernel once, not each word of it. Frames lie beside one another, and
 * so do code objects and what they refer to. Context: the helper.
 */
#ifndef OTELPROF_PYTHON_PAGES_H
#define OTELPROF_PYTHON_PAGES_H

#include "arch_memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PYTHON_PAGES = 64 };

struct python_pages {
    uintptr_t addresses[PYTHON_PAGES]; /* 0: none is there */
    uint8_t bytes[PYTHON_PAGES][ARCH_SMALLEST_PAGE_BYTES];
};

/* Before each walk: what was copied is of the past. */
void python_pages_forget(struct python_pages *pages);

/* false: some of it cannot be read. */
bool python_pages_read(struct python_pages *pages, uintptr_t address, void *to, size_t size);

#endif
