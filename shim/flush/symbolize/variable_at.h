/* The variable that an address of data lies in: locks are told by their names. Nothing is kept: who
 * asks remembers the answer. Context: flush.
 */
#ifndef OTELPROF_VARIABLE_AT_H
#define OTELPROF_VARIABLE_AT_H

#include "elf_file.h"
#include "symbol_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads the name of the smallest variable whose symbol covers the ELF virtual address, and how far
 * from its start the address is. Reads all symbols of the file: a millisecond for 100,000. false:
 * there is none, or it cannot be read. */
bool variable_at(const struct elf_file *file, uint64_t address, char name[MAX_SYMBOL_NAME],
                 uint64_t *offset);

#endif
