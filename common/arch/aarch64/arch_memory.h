/* Defines the sizes of a page, and addresses that are fixed on this architecture. */
#ifndef OTELPROF_ARCH_MEMORY_H
#define OTELPROF_ARCH_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

enum {
    /* memory can be readable or unreadable in units of so many bytes */
    ARCH_SMALLEST_PAGE_BYTES = 4096,
    ARCH_LARGEST_PAGE_BYTES = 65536, /* a multiple of so many bytes is whole pages on any kernel */
};

/* States the address of AddressSanitizer's shadow memory: AddressSanitizerAlgorithm, "Mapping"
 * (LLVM and GCC alike). No other memory is mapped there when a program starts. */
#define ARCH_ASAN_SHADOW (UINT64_C(1) << 36)

/* Returns the page size of the running kernel. Context: any. Async-signal-safe: yes. */
static inline size_t arch_page_bytes(void) {
    return getauxval(AT_PAGESZ);
}

#endif
