/* Reads memory of this process in whole pages, and keeps the last pages read.
 *
 * libunwind asks for one word at a time, and searches the same tables for each frame of each stack.
 * The program may unmap the memory at any moment, so each read is a system call (safe_read.h). So a
 * page is copied once, and the words come from the copy. The copies belong to one harvest: memory
 * that changes later is not seen. Context: flush.
 */
#ifndef OTELPROF_MEMORY_PAGES_H
#define OTELPROF_MEMORY_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_pages;

/* Returns NULL without memory. The caller closes the pages; NULL is allowed. */
struct memory_pages *memory_pages_open(void);
void memory_pages_close(struct memory_pages *pages);

/* Reads `size` bytes. Returns false if one of them is in a page that cannot be read whole. */
bool memory_pages_read(struct memory_pages *pages, uint64_t address, void *to, size_t size);

#endif
