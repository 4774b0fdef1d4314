/* What of a mapped file can be read in fact: a file that was cut short while it is mapped raises
 * SIGBUS behind its end, pages that a program has closed raise SIGSEGV. The kernel is asked, by a
 * call that changes nothing and that every sandbox allows: a tenth of a microsecond for each page.
 */
#ifndef OTELPROF_READABLE_MEMORY_H
#define OTELPROF_READABLE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes from `address` on can be read, at most `size`; they are to be read at once.
 * errno is preserved. Context: any. Async-signal-safe: yes. */
size_t readable_memory(uintptr_t address, size_t size);

#endif
