/* Opens pages that the loader has made read-only (PT_GNU_RELRO), one at a time, for writers of
 * adjacent addresses. A page that was read-only is read-only again afterwards. */
#ifndef OTELPROF_OPENED_PAGE_H
#define OTELPROF_OPENED_PAGE_H

#include "arch_memory.h"

#include <stdbool.h>
#include <stdint.h>

struct opened_page {
    uintptr_t page; /* address of the open page; 0: none */
    bool was_open;  /* the page was writable before, and stays so */
};

static inline bool opened_page_has(const struct opened_page *opened, uintptr_t address) {
    return opened->page == (address & -arch_page_bytes());
}

/* Closes the present page, and opens the page of `address`. Returns false if that page is not
 * writable, and may not be made writable (`may_change` is false) or cannot be. Context: calm. */
bool opened_page_move(struct opened_page *opened, uintptr_t address, bool may_change);

/* Closes the page, if there is one. Context: calm. */
void opened_page_close(struct opened_page *opened);

#endif
