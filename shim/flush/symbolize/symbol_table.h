/* Holds the functions of one module, sorted by address: from .symtab, .dynsym, a separate debug
 * file and .gnu_debugdata together.
 *
 * A lookup returns only a symbol that covers the address. A symbol that states no size (a label of
 * hand-written assembler) covers its own address, or the function that unwind tables describe from
 * there on: the code behind it may belong to functions whose symbols were stripped. Names are not
 * kept: each is read from the file on request, so a table takes 24 bytes a function. Of each kind
 * of table, a file's first one is read, within bounds on its size.
 * Context: flush.
 */
#ifndef OTELPROF_SYMBOL_TABLE_H
#define OTELPROF_SYMBOL_TABLE_H

#include "elf_file.h"

#include <stdbool.h>

/* Bytes of a name, its end included; C++ names of templates in templates have some thousands. A
 * longer name is not read. */
enum { MAX_SYMBOL_NAME = 8192 };

/* The table that holds a symbol's name. */
enum symbol_names { NAMES_MAIN, NAMES_MAIN_DYNAMIC, NAMES_DEBUG, NAMES_MINIDEBUG, SYMBOL_NAMES };

struct symbol {
    uint64_t start;
    uint64_t end;
    uint32_t name; /* offset in that table */
    uint8_t names; /* enum symbol_names */
    uint8_t rank;  /* of several symbols at one address, the highest rank is shown */
};

struct symbol_table {
    struct symbol *symbols;
    size_t count;
    size_t capacity;
    bool has_labels;                /* some symbols state no size */
    uint32_t strings[SYMBOL_NAMES]; /* the sections of the tables of names */
};

/* Reads all tables of `file`. */
void symbol_table_load(struct symbol_table *table, const struct elf_file *file);

/* Returns the symbol that covers the ELF virtual address, or NULL. If several at one address differ
 * in their names alone, it is any of them. `file` as below. */
const struct symbol *symbol_table_find(const struct symbol_table *table,
                                       const struct elf_file *file, uint64_t address);

/* Reads the best name of the symbols at the place of `symbol`, from the `file` that the table was
 * read from (possibly opened again). false: it has none that can be read. */
bool symbol_table_name(const struct symbol_table *table, const struct symbol *symbol,
                       const struct elf_file *file, char name[MAX_SYMBOL_NAME]);

/* Returns whether other files call a function by this symbol's name: it is global or weak, and has
 * a size. */
bool symbol_is_public(const struct symbol *symbol);

void symbol_table_free(struct symbol_table *table);

#endif
