/* How large a page is, and what lies at a fixed address. */
#ifndef OTELPROF_ARCH_MEMORY_H
#define OTELPROF_ARCH_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum {
    ARCH_SMALLEST_PAGE_BYTES = 4096, /* what lies in one of these can be read or not as a whole */
    ARCH_LARGEST_PAGE_BYTES = 4096,  /* what is a multiple of this is whole pages on any kernel */
};

/* Where AddressSanitizer has its shadow memory: AddressSanitizerAlgorithm, "Mapping" (LLVM and GCC
 * alike). Nothing else is mapped there when a program starts. */
#define ARCH_ASAN_SHADOW UINT64_C(0x7fff8000)

/* The page of the running kernel. Context: any. Async-signal-safe: yes. */
static inline size_t arch_page_bytes(void) {
    return ARCH_SMALLEST_PAGE_BYTES;
}

#endif
