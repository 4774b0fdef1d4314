/* Lists which parts of the loaded objects are readable, and which are code: the adaptor checks
 * every pointer against this list before it follows the pointer.
 *
 * The helper rewrites the list whenever objects were loaded or unloaded; the program's threads
 * query it without a lock. While the list is being written, no address counts as readable or as
 * code. */
#ifndef OTELPROF_LOADED_RANGES_H
#define OTELPROF_LOADED_RANGES_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum range_kind { RANGE_READ = 1, RANGE_CODE = 2 };

/* Rewrites the list: begin, every object, end. Context: the helper. */
void loaded_ranges_begin(void);
void loaded_ranges_add(const struct dl_phdr_info *object);
void loaded_ranges_end(void);

/* Returns the version of the list, which is odd while the list is being written. Earlier results
 * are valid as long as the version has not changed. Context: any. Async-signal-safe: yes. */
uint32_t loaded_ranges_version(void);

/* Returns how many bytes from `address` on, at most `most`, lie in one segment of that kind; 0: no
 * byte, or it is not known. Context: any. Async-signal-safe: yes. */
size_t loaded_range_at(uintptr_t address, size_t most, enum range_kind kind);

/* Returns whether `size` bytes from `address` on may be read. Context: as loaded_range_at(). */
static inline bool loaded_is_readable(uintptr_t address, size_t size) {
    return loaded_range_at(address, size, RANGE_READ) == size;
}

/* Returns whether `address` is in code. Context: as loaded_range_at(). */
static inline bool loaded_is_code(uintptr_t address) {
    return loaded_range_at(address, 1, RANGE_CODE) == 1;
}

#endif
