/* The functions of one ELF file, sorted by address: from .symtab, .dynsym, a separate debug file
 * and .gnu_debugdata together.
 *
 * A look-up answers only with a symbol that covers the address: within its size, or, for symbols
 * that state none (hand-written assembler), up to the next symbol of the same section.
 * Context: flush.
 */
#ifndef OTELPROF_SYMBOL_TABLE_H
#define OTELPROF_SYMBOL_TABLE_H

#include "elf_file.h"

#include <stdbool.h>

struct symbol {
    uint64_t start;
    uint64_t end;
    const char *name; /* in the mapped file */
    uint8_t rank;     /* which of several names of one address is shown: the highest */
};

struct symbol_table {
    struct symbol *symbols;
    size_t count;
    size_t capacity;
};

/* Reads all tables of `file`, which must outlive the table. */
void symbol_table_load(struct symbol_table *table, const struct elf_file *file);

/* The symbol that covers the ELF virtual address, or NULL. */
const struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address);

/* Whether it is the name by which other files call a function: global or weak, and of a size. */
bool symbol_is_public(const struct symbol *symbol);

void symbol_table_free(struct symbol_table *table);

#endif
