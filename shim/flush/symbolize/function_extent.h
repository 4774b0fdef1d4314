/* Finds the extent of a function by the unwind tables in its file: .eh_frame_hdr and .eh_frame, of
 * which only the few entries of a search are read. Sources: LSB 5.0 core, 10.6. Context: flush.
 */
#ifndef OTELPROF_FUNCTION_EXTENT_H
#define OTELPROF_FUNCTION_EXTENT_H

#include "elf_sections.h"

#include <stdbool.h>
#include <stdint.h>

/* Stores the extent [start, end) of the function around the ELF virtual `address`. Returns false if
 * the tables describe no function there, or cannot be read. */
bool function_extent(const struct elf_sections *sections, uint64_t address, uint64_t *start,
                     uint64_t *end);

#endif
