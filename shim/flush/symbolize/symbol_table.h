/* Holds an index of the functions of one module, sorted by address: of .symtab, .dynsym, a separate
 * debug file and .gnu_debugdata together.
 *
 * A lookup returns only a symbol that covers the address. A symbol that states no size (a label of
 * hand-written assembler) covers its own address, or the function that unwind tables describe from
 * there on: the code behind it may belong to functions whose symbols were stripped.
 *
 * The index has the place of each symbol, 8 bytes; sizes and names are read from the file on
 * request. So the tables of the largest programs, of millions of symbols, have room. Of each kind
 * of table, a file's first one is read. Context: flush.
 */
#ifndef OTELPROF_SYMBOL_TABLE_H
#define OTELPROF_SYMBOL_TABLE_H

#include "elf_file.h"

#include <stdbool.h>

enum {
    /* Bytes of a name, its end included; C++ names of templates in templates have some thousands. A
     * longer name is not read. */
    MAX_SYMBOL_NAME = 8192,
    /* Symbols that are read of one table, and functions in an index: 96 MiB of it. chrome,
     * clickhouse and libtorch have a million or two. */
    MAX_SYMBOLS = 12 << 20,
};

/* The table that holds a symbol. */
enum symbol_names { NAMES_MAIN, NAMES_MAIN_DYNAMIC, NAMES_DEBUG, NAMES_MINIDEBUG, SYMBOL_NAMES };

/* The result of a lookup. */
struct symbol {
    uint64_t start;
    uint64_t end;
    size_t at;     /* in the index: of any symbol that begins at `start` */
    unsigned rank; /* of several symbols at one address, the highest rank is shown */
};

struct symbol_table {
    uint64_t *index; /* from the highest bits on: the start from `low`, the table, the number */
    size_t count;
    uint64_t low;                  /* the lowest address of code */
    bool has_labels;               /* some symbols state no size */
    uint32_t tables[SYMBOL_NAMES]; /* the sections with the symbols */
};

/* Returns the most bytes that an index of `file` takes. */
uint64_t symbol_table_bytes(const struct elf_file *file);

/* Indexes all tables of `file`. */
void symbol_table_load(struct symbol_table *table, const struct elf_file *file);

/* Returns the address of the symbol at that place in the index. */
static inline uint64_t symbol_table_start(const struct symbol_table *table, size_t at) {
    return table->low + (table->index[at] >> 32);
}

/* Gives the symbol that covers the ELF virtual address; false: there is none. `file` is the one
 * that the table was read from (possibly opened again). */
bool symbol_table_find(const struct symbol_table *table, const struct elf_file *file,
                       uint64_t address, struct symbol *found);

/* Reads the best name of the symbols at the place of `symbol`. false: it has none that can be read.
 */
bool symbol_table_name(const struct symbol_table *table, const struct symbol *symbol,
                       const struct elf_file *file, char name[MAX_SYMBOL_NAME]);

/* Returns whether other files call a function by this symbol's name: it is global or weak, and has
 * a size. */
bool symbol_is_public(const struct symbol *symbol);

void symbol_table_free(struct symbol_table *table);

#endif
