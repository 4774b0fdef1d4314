/* Holds an index of the functions of one module, sorted by address, from .symtab, .dynsym, a
 * separate debug file and .gnu_debugdata together.
 *
 * A lookup returns only a symbol that covers the address. A symbol that states no size (a label of
 * hand-written assembler) covers its own address, or the function that unwind tables describe from
 * there on: the code behind it may belong to functions whose symbols were stripped.
 *
 * The index has the place of each symbol, 8 bytes; sizes and names are read from the file on
 * request. So the tables of the largest programs, of millions of symbols, have room. Of each kind
 * of table, only a file's first is read. Context: flush.
 */
#ifndef OTELPROF_SYMBOL_TABLE_H
#define OTELPROF_SYMBOL_TABLE_H

#include "elf_file.h"

#include <stdbool.h>

enum {
    /* Bounds the size of a name, its end included; a longer name is not read. C++ names of
     * templates in templates have some thousands of bytes. */
    MAX_SYMBOL_NAME = 8192,
    /* Bounds the symbols that are read of one table, and the functions in an index, which then has
     * 96 MiB. chrome, clickhouse and libtorch have one or two million. */
    MAX_SYMBOLS = 12 << 20,
};

/* Lists the tables that may have a symbol. */
enum symbol_names { NAMES_MAIN, NAMES_MAIN_DYNAMIC, NAMES_DEBUG, NAMES_MINIDEBUG, SYMBOL_NAMES };

/* Holds the result of a lookup. */
struct symbol {
    uint64_t start;
    uint64_t end;
    size_t at; /* place in the index of any symbol that begins at `start` */
    /* if several symbols have one address, the symbol with the highest rank is shown */
    unsigned rank;
};

struct symbol_table {
    /* of each symbol, from the highest bits on: its start from `low`, its table, its number */
    uint64_t *index;
    size_t count;
    uint64_t low;                  /* the lowest address of code */
    bool has_labels;               /* some symbols state no size */
    uint32_t tables[SYMBOL_NAMES]; /* numbers of the sections with the symbols */
};

/* Returns the largest number of bytes that an index of `file` takes. */
uint64_t symbol_table_bytes(const struct elf_file *file);

/* Indexes all tables of `file`. */
void symbol_table_load(struct symbol_table *table, const struct elf_file *file);

/* Returns the address of the symbol at that place in the index. */
static inline uint64_t symbol_table_start(const struct symbol_table *table, size_t at) {
    return table->low + (table->index[at] >> 32);
}

/* Stores the symbol that covers the ELF virtual address. Returns false if there is none. `file` is
 * the file that the table was read from (possibly opened again). */
bool symbol_table_find(const struct symbol_table *table, const struct elf_file *file,
                       uint64_t address, struct symbol *found);

/* Reads the best name of the symbols at the place of `symbol`. Returns false if no name can be
 * read.
 */
bool symbol_table_name(const struct symbol_table *table, const struct symbol *symbol,
                       const struct elf_file *file, char name[MAX_SYMBOL_NAME]);

/* Returns true if other files may call a function by this symbol's name: it is global or weak, and
 * has a size. */
bool symbol_is_public(const struct symbol *symbol);

void symbol_table_free(struct symbol_table *table);

#endif
