/* The functions of one module, sorted by address: from .symtab, .dynsym, a separate debug file and
 * .gnu_debugdata together.
 *
 * A look-up answers only with a symbol that covers the address: within its size, or, for symbols
 * that state none (hand-written assembler), up to the next symbol of the same section. Names are
 * not kept: each is read from the file when it is asked for, so a table takes 24 bytes a function.
 * The first table of each kind in a file is read, within bounds on its size.
 * Context: flush.
 */
#ifndef OTELPROF_SYMBOL_TABLE_H
#define OTELPROF_SYMBOL_TABLE_H

#include "elf_file.h"

#include <stdbool.h>

/* Bytes of a name, its end included; C++ names of templates in templates have some thousands. What
 * is longer is not read. */
enum { MAX_SYMBOL_NAME = 8192 };

/* Which table of names a symbol's is in. */
enum symbol_names { NAMES_MAIN, NAMES_MAIN_DYNAMIC, NAMES_DEBUG, NAMES_MINIDEBUG, SYMBOL_NAMES };

struct symbol {
    uint64_t start;
    uint64_t end;
    uint32_t name; /* offset in that table */
    uint8_t names; /* enum symbol_names */
    uint8_t rank;  /* which of several symbols of one address is shown: the highest */
};

struct symbol_table {
    struct symbol *symbols;
    size_t count;
    size_t capacity;
    uint32_t strings[SYMBOL_NAMES]; /* the sections that the tables of names are */
};

/* Reads all tables of `file`. */
void symbol_table_load(struct symbol_table *table, const struct elf_file *file);

/* The symbol that covers the ELF virtual address, or NULL. Where several at one address differ
 * in their names alone, it is any of them. */
const struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address);

/* Reads the best name of the symbols that are where `symbol` is, from the `file` that the table was
 * read from (open again, perhaps). false: it has none that can be read. */
bool symbol_table_name(const struct symbol_table *table, const struct symbol *symbol,
                       const struct elf_file *file, char name[MAX_SYMBOL_NAME]);

/* Whether it is the name by which other files call a function: global or weak, and of a size. */
bool symbol_is_public(const struct symbol *symbol);

void symbol_table_free(struct symbol_table *table);

#endif
