#include "symbol_table.h"

#include <stdlib.h>
#include <string.h>

/* How many symbols may begin between an enclosing function and the address. */
enum { MAX_NESTED = 64 };

/* --- reading --- */

/* A global name says more than a weak one, that more than a local one; names that begin with an
 * underscore are mostly second names. */
static uint8_t rank_of(const GElf_Sym *symbol, const char *name) {
    const unsigned binding = GELF_ST_BIND(symbol->st_info);
    const unsigned by_binding = binding == STB_GLOBAL ? 4 : binding == STB_WEAK ? 2 : 0;
    return (uint8_t)(by_binding + (name[0] != '_') + 8 * (symbol->st_size != 0));
}

static bool is_function(const GElf_Sym *symbol) {
    const unsigned type = GELF_ST_TYPE(symbol->st_info);
    const bool code = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
    return code && symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE;
}

static bool is_executable(Elf *elf, size_t index, GElf_Shdr *header) {
    Elf_Scn *const section = elf_getscn(elf, index);
    return section && gelf_getshdr(section, header) && (header->sh_flags & SHF_EXECINSTR);
}

static void add(struct symbol_table *table, struct symbol symbol) {
    if (table->count == table->capacity) {
        const size_t capacity = table->capacity ? 2 * table->capacity : 1024;
        struct symbol *const symbols = realloc(table->symbols, capacity * sizeof *symbols);
        if (!symbols)
            return; /* fewer names, none wrong */
        table->symbols = symbols;
        table->capacity = capacity;
    }
    table->symbols[table->count++] = symbol;
}

static void load_section(struct symbol_table *table, Elf *elf, Elf_Scn *section,
                         const GElf_Shdr *header) {
    Elf_Data *const data = elf_getdata(section, NULL);
    const size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    for (size_t i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Shdr home;
        if (!gelf_getsym(data, (int)i, &symbol) || !is_function(&symbol) ||
            !is_executable(elf, symbol.st_shndx, &home))
            continue;
        const char *const name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (!name || !*name)
            continue;
        /* the end of a symbol without size is set once the table is sorted */
        const uint64_t section_end = home.sh_addr + home.sh_size;
        const uint64_t end = symbol.st_size ? symbol.st_value + symbol.st_size : section_end;
        add(table, (struct symbol){symbol.st_value, end, name, rank_of(&symbol, name)});
    }
}

static void load_image(struct symbol_table *table, Elf *elf) {
    for (Elf_Scn *section = NULL; elf && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
            load_section(table, elf, section, &header);
    }
}

/* --- sorting --- */

static int by_address(const void *a, const void *b) {
    const struct symbol *const left = a;
    const struct symbol *const right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank > right->rank ? -1 : 1;
    return strcmp(left->name, right->name);
}

static bool has_size(const struct symbol *symbol) {
    return symbol->rank >= 8;
}

/* One symbol for each address, the best; symbols without size end where the next begins. */
static void keep_best(struct symbol_table *table) {
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++)
        if (kept == 0 || table->symbols[kept - 1].start != table->symbols[i].start)
            table->symbols[kept++] = table->symbols[i];
    table->count = kept;
    for (size_t i = 0; i + 1 < kept; i++)
        if (!has_size(&table->symbols[i]) && table->symbols[i].end > table->symbols[i + 1].start)
            table->symbols[i].end = table->symbols[i + 1].start;
}

void symbol_table_load(struct symbol_table *table, const struct elf_file *file) {
    load_image(table, file->main.elf);
    load_image(table, file->debug.elf);
    load_image(table, file->minidebug.elf);
    if (table->count == 0)
        return;
    qsort(table->symbols, table->count, sizeof *table->symbols, by_address);
    keep_best(table);
}

/* --- asking --- */

const struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address) {
    size_t low = 0;
    size_t high = table->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (table->symbols[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    /* A small symbol may lie inside a larger one: look further down. A label inside a function
     * states no size; the function that encloses it is the better answer. */
    const struct symbol *label = NULL;
    for (size_t back = 0; back < MAX_NESTED && low > back; back++) {
        const struct symbol *const symbol = &table->symbols[low - 1 - back];
        if (address >= symbol->end)
            continue;
        if (has_size(symbol))
            return symbol;
        if (!label)
            label = symbol;
    }
    return label;
}

void symbol_table_free(struct symbol_table *table) {
    free(table->symbols);
    *table = (struct symbol_table){0};
}
