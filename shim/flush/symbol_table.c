#include "symbol_table.h"

#include <stdlib.h>
#include <string.h>

/* How many symbols may begin between an enclosing function and the address. */
enum { MAX_NESTED = 64 };

/* --- reading --- */

/* Parts of a rank. */
enum { RANK_PLAIN = 1, RANK_WEAK = 2, RANK_GLOBAL = 4, RANK_SIZED = 8 };

/* A global name says more than a weak one, that more than a local one; names that begin with an
 * underscore are mostly second names. */
static uint8_t rank_of(const GElf_Sym *symbol, const char *name) {
    const unsigned binding = GELF_ST_BIND(symbol->st_info);
    const unsigned by_binding = binding == STB_GLOBAL ? RANK_GLOBAL
                                : binding == STB_WEAK ? RANK_WEAK
                                                      : 0;
    return (uint8_t)(by_binding + (name[0] != '_' ? RANK_PLAIN : 0) +
                     (symbol->st_size ? RANK_SIZED : 0));
}

static bool is_function(const GElf_Sym *symbol) {
    const unsigned type = GELF_ST_TYPE(symbol->st_info);
    const bool code = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
    return code && symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE;
}

/* The section that symbols live in: mostly that of the symbol before. */
struct home {
    size_t index; /* 0: none yet */
    bool executable;
    uint64_t end;
};

static void look_at_home(struct home *home, Elf *elf, size_t index) {
    Elf_Scn *const section = elf_getscn(elf, index);
    GElf_Shdr header;
    *home = (struct home){.index = index};
    if (!section || !gelf_getshdr(section, &header))
        return;
    home->executable = header.sh_flags & SHF_EXECINSTR;
    home->end = header.sh_addr + header.sh_size;
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
    struct home home = {0};
    for (size_t i = 1; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || !is_function(&symbol))
            continue;
        if (symbol.st_shndx != home.index)
            look_at_home(&home, elf, symbol.st_shndx);
        if (!home.executable)
            continue;
        const char *const name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (!name || !*name)
            continue;
        /* the end of a symbol without size is set once the table is sorted */
        const uint64_t end = symbol.st_size ? symbol.st_value + symbol.st_size : home.end;
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

static void sort(struct symbol *symbols, size_t count) {
    if (count > 1)
        qsort(symbols, count, sizeof *symbols, by_address);
}

/* A span of addresses for each symbol, in the mean. */
struct spans {
    uint64_t low, width;
    size_t count;
    size_t *ends; /* where the symbols of a span end; before they are spread, where they begin */
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

/* By address, as qsort() alone would: but a symbol is put into its span first, and the few of a
 * span are sorted then. The 30,000 symbols of cc1plus took qsort() alone four times as long. */
static void sort_by_address(struct symbol_table *table) {
    struct spans spans;
    struct symbol *const spread = malloc(table->count * sizeof *spread);
    if (!spread || !measure_spans(&spans, table)) {
        free(spread);
        sort(table->symbols, table->count);
        return;
    }
    for (size_t i = 0; i < table->count; i++)
        spread[spans.ends[span_of(&spans, &table->symbols[i])]++] = table->symbols[i];
    for (size_t i = 0, begin = 0; i < spans.count; begin = spans.ends[i++])
        sort(&spread[begin], spans.ends[i] - begin);
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
    sort_by_address(table);
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
