#include "symbol_table.h"

#include "function_extent.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_NESTED = 64,  /* symbols that may begin between an enclosing function and the address */
    MAX_ALIASES = 16, /* names of one address that are compared; libc has up to twelve */
    MAX_TABLE_BYTES = 24 << 20, /* of one symbol table: a million symbols; clang has 0.3 */
    READ_AT_ONCE = 512,         /* symbols */
    FIRST_NAME_BYTES = 256,     /* most names are shorter */
    LABEL_BYTES = 1,            /* of a symbol that states no size: its own address */
};

/* --- reading --- */

/* Parts of a rank. A global name is better than a weak one, and that than a local one. */
enum { RANK_WEAK = 1, RANK_GLOBAL = 2, RANK_SIZED = 4 };

static void symbol_table_add(struct symbol_table *table, struct symbol symbol) {
    if (table->count == table->capacity) {
        const size_t capacity = table->capacity ? 2 * table->capacity : 1024;
        struct symbol *const symbols = realloc(table->symbols, capacity * sizeof *symbols);
        if (!symbols)
            return; /* some names are missing, none is wrong */
        table->symbols = symbols;
        table->capacity = capacity;
    }
    table->symbols[table->count++] = symbol;
    table->has_labels |= !(symbol.rank & RANK_SIZED);
}

static void add_symbol(struct symbol_table *table, const struct elf_sections *sections,
                       const Elf64_Sym *symbol, enum symbol_names names) {
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);
    const unsigned binding = ELF64_ST_BIND(symbol->st_info);
    const bool is_code = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
    if (!is_code || symbol->st_name == 0 || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_shndx >= SHN_LORESERVE || symbol->st_shndx >= sections->count)
        return;
    const Elf64_Shdr *const home = &sections->headers[symbol->st_shndx];
    if (!(home->sh_flags & SHF_EXECINSTR))
        return;
    const uint64_t size = symbol->st_size ? symbol->st_size : LABEL_BYTES;
    const unsigned by_binding = binding == STB_GLOBAL ? RANK_GLOBAL
                                : binding == STB_WEAK ? RANK_WEAK
                                                      : 0;
    const unsigned by_size = symbol->st_size ? RANK_SIZED : 0;
    symbol_table_add(table, (struct symbol){.start = symbol->st_value,
                                            .end = symbol->st_value + size,
                                            .name = symbol->st_name,
                                            .names = (uint8_t)names,
                                            .rank = (uint8_t)(by_binding + by_size)});
}

static void load_section(struct symbol_table *table, const struct elf_sections *sections,
                         const Elf64_Shdr *header, enum symbol_names names) {
    Elf64_Sym symbols[READ_AT_ONCE];
    const uint64_t count = header->sh_size / sizeof *symbols;
    if (header->sh_size > MAX_TABLE_BYTES || header->sh_link >= sections->count ||
        sections->headers[header->sh_link].sh_type != SHT_STRTAB)
        return;
    table->strings[names] = header->sh_link;
    for (uint64_t at = 0; at < count; at += READ_AT_ONCE) {
        const size_t some = count - at < READ_AT_ONCE ? count - at : READ_AT_ONCE;
        if (!elf_section_read_part(sections, header, at * sizeof *symbols, symbols,
                                   some * sizeof *symbols))
            return;
        for (size_t i = 0; i < some; i++)
            add_symbol(table, sections, &symbols[i], names);
    }
}

/* Linkers write one section of a kind; further ones are ignored. */
static void load_first(struct symbol_table *table, const struct elf_sections *sections,
                       uint32_t type, enum symbol_names names) {
    for (uint32_t i = 0; i < sections->count; i++) {
        const Elf64_Shdr *const header = &sections->headers[i];
        if (header->sh_type != type || header->sh_entsize != sizeof(Elf64_Sym))
            continue;
        load_section(table, sections, header, names);
        return;
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
    return (left->name > right->name) - (left->name < right->name);
}

static void symbol_table_sort(struct symbol *symbols, size_t count) {
    if (count > 1)
        qsort(symbols, count, sizeof *symbols, by_address);
}

/* Each span holds one symbol on average. */
struct spans {
    uint64_t low, width;
    size_t count;
    size_t *ends; /* the end of each span's symbols; before they are distributed, the beginning */
};

static size_t span_of(const struct spans *spans, const struct symbol *symbol) {
    return (symbol->start - spans->low) / spans->width;
}

static bool measure_spans(struct spans *spans, const struct symbol_table *table) {
    uint64_t high = table->symbols[0].start;
    spans->low = high;
    for (size_t i = 1; i < table->count; i++) {
        const uint64_t start = table->symbols[i].start;
        spans->low = start < spans->low ? start : spans->low;
        high = start > high ? start : high;
    }
    spans->count = table->count;
    spans->width = (high - spans->low) / table->count + 1;
    spans->ends = calloc(spans->count, sizeof *spans->ends);
    if (!spans->ends)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        const size_t span = span_of(spans, &table->symbols[i]);
        if (span + 1 < spans->count)
            spans->ends[span + 1]++;
    }
    for (size_t i = 1; i < spans->count; i++)
        spans->ends[i] += spans->ends[i - 1];
    return true;
}

/* Sorts by address, with the result of qsort() alone. It first puts each symbol into its span, and
 * then sorts the few of each span. For the 30,000 symbols of cc1plus qsort() alone took four times
 * as long. */
static void sort_by_address(struct symbol_table *table) {
    struct spans spans;
    struct symbol *const spread = malloc(table->count * sizeof *spread);
    if (!spread || !measure_spans(&spans, table)) {
        free(spread);
        symbol_table_sort(table->symbols, table->count);
        return;
    }
    for (size_t i = 0; i < table->count; i++)
        spread[spans.ends[span_of(&spans, &table->symbols[i])]++] = table->symbols[i];
    for (size_t i = 0, begin = 0; i < spans.count; begin = spans.ends[i++])
        symbol_table_sort(&spread[begin], spans.ends[i] - begin);
    free(spans.ends);
    free(table->symbols);
    table->symbols = spread;
    table->capacity = table->count;
}

static bool has_size(const struct symbol *symbol) {
    return symbol->rank & RANK_SIZED;
}

bool symbol_is_public(const struct symbol *symbol) {
    return has_size(symbol) && (symbol->rank & (RANK_GLOBAL | RANK_WEAK));
}

/* Keeps the best symbol of each address, or several if only their names differ. */
static void keep_best(struct symbol_table *table) {
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct symbol *const symbol = &table->symbols[i];
        if (kept == 0 || table->symbols[kept - 1].start != symbol->start ||
            table->symbols[kept - 1].rank == symbol->rank)
            table->symbols[kept++] = *symbol;
    }
    table->count = kept;
}

void symbol_table_load(struct symbol_table *table, const struct elf_file *file) {
    load_first(table, &file->parts[PART_MAIN], SHT_SYMTAB, NAMES_MAIN);
    load_first(table, &file->parts[PART_MAIN], SHT_DYNSYM, NAMES_MAIN_DYNAMIC);
    load_first(table, &file->parts[PART_DEBUG], SHT_SYMTAB, NAMES_DEBUG);
    load_first(table, &file->parts[PART_MINIDEBUG], SHT_SYMTAB, NAMES_MINIDEBUG);
    if (table->count == 0)
        return;
    sort_by_address(table);
    keep_best(table);
}

/* --- searching --- */

/* Returns the number of symbols that begin at `address` or before. */
static size_t count_up_to(const struct symbol_table *table, uint64_t address) {
    size_t low = 0;
    size_t high = table->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (table->symbols[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A small symbol may lie inside a larger one: searches further down. `*label` is a symbol without
 * size at the address; NULL: there is none. */
static const struct symbol *find_sized(const struct symbol_table *table, uint64_t address,
                                       const struct symbol **label) {
    const size_t count = count_up_to(table, address);
    *label = NULL;
    for (size_t back = 0; back < MAX_NESTED && count > back; back++) {
        const struct symbol *const symbol = &table->symbols[count - 1 - back];
        if (address >= symbol->end)
            continue;
        if (has_size(symbol))
            return symbol;
        if (!*label)
            *label = symbol;
    }
    return NULL;
}

/* A label inside a function states no size; the function that encloses it is the better result. If
 * that states none either, its extent is in the unwind tables. */
const struct symbol *symbol_table_find(const struct symbol_table *table,
                                       const struct elf_file *file, uint64_t address) {
    const struct symbol *label;
    const struct symbol *first;
    uint64_t start;
    uint64_t end;
    const struct symbol *const sized = find_sized(table, address, &label);
    if (sized || !table->has_labels ||
        !function_extent(&file->parts[PART_MAIN], address, &start, &end))
        return sized ? sized : label;
    (void)find_sized(table, start, &first);
    return first ? first : label;
}

/* --- names --- */

/* Reads a few bytes first; for a long name all that it may have. */
static bool symbol_read_name(const struct symbol_table *table, const struct symbol *symbol,
                             const struct elf_file *file, char name[MAX_SYMBOL_NAME]) {
    static const enum elf_part parts[] = {[NAMES_MAIN] = PART_MAIN,
                                          [NAMES_MAIN_DYNAMIC] = PART_MAIN,
                                          [NAMES_DEBUG] = PART_DEBUG,
                                          [NAMES_MINIDEBUG] = PART_MINIDEBUG};
    const struct elf_sections *const sections = &file->parts[parts[symbol->names]];
    const uint32_t section = table->strings[symbol->names];
    const Elf64_Shdr *const header = section < sections->count ? &sections->headers[section] : NULL;
    if (!header || symbol->name >= header->sh_size)
        return false;
    const uint64_t left = header->sh_size - symbol->name;
    for (size_t most = FIRST_NAME_BYTES; most <= MAX_SYMBOL_NAME; most = MAX_SYMBOL_NAME) {
        const size_t size = left < most ? left : most;
        if (!elf_section_read_part(sections, header, symbol->name, name, size))
            return false;
        if (memchr(name, 0, size))
            return name[0] != 0;
        if (size == left || most == MAX_SYMBOL_NAME)
            return false;
    }
    return false;
}

/* Names that begin with an underscore are mostly secondary names. */
static bool symbol_is_better(const char *name, const char *than) {
    const bool plain = name[0] != '_';
    if (plain != (than[0] != '_'))
        return plain;
    return strcmp(name, than) < 0;
}

bool symbol_table_name(const struct symbol_table *table, const struct symbol *symbol,
                       const struct elf_file *file, char name[MAX_SYMBOL_NAME]) {
    const struct symbol *const end = table->symbols + table->count;
    const struct symbol *at = symbol;
    char other[MAX_SYMBOL_NAME];
    bool found = false;
    for (int i = 0; i < MAX_ALIASES && at > table->symbols && at[-1].start == symbol->start; i++)
        at--;
    for (int i = 0; i < MAX_ALIASES && at < end && at->start == symbol->start; i++, at++) {
        if (!symbol_read_name(table, at, file, other) || (found && !symbol_is_better(other, name)))
            continue;
        memcpy(name, other, strlen(other) + 1);
        found = true;
    }
    return found;
}

void symbol_table_free(struct symbol_table *table) {
    free(table->symbols);
    *table = (struct symbol_table){0};
}
