/* How large a page is. */
#ifndef OTELPROF_ARCH_PAGE_H
#define OTELPROF_ARCH_PAGE_H

#include <stddef.h>

enum {
    ARCH_SMALLEST_PAGE_BYTES = 4096, /* what lies in one of these can be read or not as a whole */
    ARCH_LARGEST_PAGE_BYTES = 4096,  /* what is a multiple of this is whole pages on any kernel */
};

/* The page of the running kernel. Context: any. Async-signal-safe: yes. */
static inline size_t arch_page_bytes(void) {
    return ARCH_SMALLEST_PAGE_BYTES;
}

#endif
