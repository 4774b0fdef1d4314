/* Finds the variable around an address of data, to show a lock by its name. Caches no results; the
 * caller caches them. Context: flush. */
#ifndef OTELPROF_VARIABLE_AT_H
#define OTELPROF_VARIABLE_AT_H

#include "elf_file.h"
#include "symbol_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads the name of the smallest variable whose symbol covers the ELF virtual address, and the
 * address's offset from its start. Reads all symbols of the file: a millisecond for 100,000.
 * Returns false if there is none, or it cannot be read. */
bool variable_at(const struct elf_file *file, uint64_t address, char name[MAX_SYMBOL_NAME],
                 uint64_t *offset);

#endif
