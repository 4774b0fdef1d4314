#include "symbol_table.h"

#include "function_extent.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* number of symbols searched backwards for a function that encloses the address */
    MAX_NESTED = 64,
    MAX_ALIASES = 16,       /* names of one address that are compared; libc has up to twelve */
    READ_AT_ONCE = 512,     /* number of symbols read at once */
    FIRST_NAME_BYTES = 256, /* bytes of a name that are read first; most names are shorter */
    LABEL_BYTES = 1,  /* size, in bytes, that a symbol without a size covers: its own address */
    FEW_KEYS = 32,    /* largest number of keys that are sorted by insertion */
    START_SHIFT = 32, /* position of the start in a key of the index */
    TABLE_SHIFT = 30,
    TABLE_MASK = 3,
    NUMBER_MASK = (1 << TABLE_SHIFT) - 1,
};

/* Lists the parts of a rank. A global name is better than a weak name, and a weak name is better
 * than a local name. */
enum { RANK_WEAK = 1, RANK_GLOBAL = 2, RANK_SIZED = 4 };

static const struct {
    enum elf_part part;
    uint32_t type;
} tables[SYMBOL_NAMES] = {
    [NAMES_MAIN] = {PART_MAIN, SHT_SYMTAB},
    [NAMES_MAIN_DYNAMIC] = {PART_MAIN, SHT_DYNSYM},
    [NAMES_DEBUG] = {PART_DEBUG, SHT_SYMTAB},
    [NAMES_MINIDEBUG] = {PART_MINIDEBUG, SHT_SYMTAB},
};

/* --- reading --- */

/* Returns the number of the section with the file's first table of that kind; 0: there is none.
 * Linkers write only one table of a kind. */
static uint32_t find_table(const struct elf_file *file, enum symbol_names kind) {
    const struct elf_sections *const sections = &file->parts[tables[kind].part];
    for (uint32_t i = 0; i < sections->count; i++) {
        const Elf64_Shdr *const header = &sections->headers[i];
        if (header->sh_type == tables[kind].type && header->sh_entsize == sizeof(Elf64_Sym))
            return header->sh_link < sections->count &&
                           sections->headers[header->sh_link].sh_type == SHT_STRTAB
                       ? i
                       : 0;
    }
    return 0;
}

/* Returns the number of symbols of the table that are read; 0 without a table. */
static uint64_t symbols_of(const struct elf_file *file, enum symbol_names kind) {
    const struct elf_sections *const sections = &file->parts[tables[kind].part];
    const uint32_t number = find_table(file, kind);
    const uint64_t bytes = number ? elf_section_size(sections, &sections->headers[number]) : 0;
    const uint64_t count = bytes / sizeof(Elf64_Sym);
    return count < MAX_SYMBOLS ? count : MAX_SYMBOLS;
}

static uint64_t symbols_of_all(const struct elf_file *file) {
    uint64_t count = 0;
    for (int kind = 0; kind < SYMBOL_NAMES; kind++)
        count += symbols_of(file, kind);
    return count < MAX_SYMBOLS ? count : MAX_SYMBOLS;
}

uint64_t symbol_table_bytes(const struct elf_file *file) {
    return symbols_of_all(file) * sizeof(uint64_t);
}

static bool is_code(const Elf64_Shdr *header) {
    return (header->sh_flags & (SHF_EXECINSTR | SHF_ALLOC)) == (SHF_EXECINSTR | SHF_ALLOC);
}

static uint64_t lowest_code(const struct elf_file *file) {
    uint64_t low = UINT64_MAX;
    for (int part = 0; part < ELF_PARTS; part++)
        for (uint32_t i = 0; i < file->parts[part].count; i++) {
            const Elf64_Shdr *const header = &file->parts[part].headers[i];
            if (is_code(header) && header->sh_addr < low)
                low = header->sh_addr;
        }
    return low;
}

static bool is_function(const struct elf_sections *sections, const Elf64_Sym *symbol) {
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
           symbol->st_name != 0 && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_shndx < SHN_LORESERVE && symbol->st_shndx < sections->count &&
           is_code(&sections->headers[symbol->st_shndx]);
}

/* Skips symbols that are 4 GiB or more above the lowest code, because an index has no room for
 * them. A processor's calls reach 2 GiB. */
static void add_symbol(struct symbol_table *table, const Elf64_Sym *symbol, enum symbol_names kind,
                       uint64_t number) {
    const uint64_t start = symbol->st_value - table->low;
    if (start > UINT32_MAX)
        return;
    table->index[table->count++] =
        start << START_SHIFT | (uint64_t)kind << TABLE_SHIFT | (number & NUMBER_MASK);
    table->has_labels |= symbol->st_size == 0;
}

static void load_kind(struct symbol_table *table, const struct elf_file *file,
                      enum symbol_names kind, uint64_t room) {
    Elf64_Sym symbols[READ_AT_ONCE];
    const struct elf_sections *const sections = &file->parts[tables[kind].part];
    const uint64_t count = symbols_of(file, kind);
    table->tables[kind] = find_table(file, kind);
    for (uint64_t at = 0; at < count; at += READ_AT_ONCE) {
        const size_t some = count - at < READ_AT_ONCE ? count - at : READ_AT_ONCE;
        if (!elf_section_read_part(sections, &sections->headers[table->tables[kind]],
                                   at * sizeof *symbols, symbols, some * sizeof *symbols))
            return;
        for (size_t i = 0; i < some && table->count < room; i++)
            if (is_function(sections, &symbols[i]))
                add_symbol(table, &symbols[i], kind, at + i);
    }
}

/* --- sorting --- */

static void sort_few(uint64_t *keys, size_t count) {
    for (size_t i = 1; i < count; i++) {
        const uint64_t key = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

enum { DIGITS = 256, DIGIT_BITS = 8, TOP_DIGIT = 64 - DIGIT_BITS };

static unsigned digit_of(uint64_t key, unsigned shift) {
    return key >> shift & (DIGITS - 1);
}

/* Sorts in place, by one byte of the keys at a time, from the highest on, because a copy of the
 * index would need as much memory again. At most eight calls are nested. */
static void sort_keys(uint64_t *keys, size_t count, unsigned shift) {
    size_t ends[DIGITS] = {0};
    size_t next[DIGITS];
    if (count <= FEW_KEYS) {
        sort_few(keys, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        ends[digit_of(keys[i], shift)]++;
    for (size_t digit = 0, end = 0; digit < DIGITS; digit++) {
        next[digit] = end;
        end = ends[digit] += end;
    }
    for (size_t digit = 0; digit < DIGITS; digit++)
        while (next[digit] < ends[digit]) {
            const uint64_t key = keys[next[digit]];
            size_t *const to = &next[digit_of(key, shift)];
            keys[next[digit]] = keys[*to];
            keys[(*to)++] = key;
        }
    for (size_t digit = 0; shift && digit < DIGITS; digit++) {
        const size_t begin = digit ? ends[digit - 1] : 0;
        sort_keys(keys + begin, ends[digit] - begin, shift - DIGIT_BITS);
    }
}

void symbol_table_load(struct symbol_table *table, const struct elf_file *file) {
    const uint64_t room = symbols_of_all(file);
    *table = (struct symbol_table){.low = lowest_code(file)};
    table->index = room ? malloc(room * sizeof *table->index) : NULL;
    if (!table->index)
        return;
    for (int kind = 0; kind < SYMBOL_NAMES; kind++)
        load_kind(table, file, kind, room);
    sort_keys(table->index, table->count, TOP_DIGIT);
    uint64_t *const smaller = realloc(table->index, (table->count + 1) * sizeof *table->index);
    table->index = smaller ? smaller : table->index;
}

/* --- searching --- */

/* Reads the symbol at that place in the index. Returns false if the file has changed. */
static bool read_symbol(const struct symbol_table *table, const struct elf_file *file, size_t at,
                        Elf64_Sym *symbol) {
    const enum symbol_names kind = table->index[at] >> TABLE_SHIFT & TABLE_MASK;
    const struct elf_sections *const sections = &file->parts[tables[kind].part];
    const uint32_t number = table->tables[kind];
    const uint64_t offset = (table->index[at] & NUMBER_MASK) * sizeof *symbol;
    return number < sections->count &&
           elf_section_read_part(sections, &sections->headers[number], offset, symbol,
                                 sizeof *symbol) &&
           is_function(sections, symbol) && symbol->st_value == symbol_table_start(table, at);
}

static unsigned rank_of(const Elf64_Sym *symbol) {
    const unsigned binding = ELF64_ST_BIND(symbol->st_info);
    const unsigned by_binding = binding == STB_GLOBAL ? RANK_GLOBAL
                                : binding == STB_WEAK ? RANK_WEAK
                                                      : 0;
    return by_binding + (symbol->st_size ? RANK_SIZED : 0);
}

static bool has_size(const struct symbol *symbol) {
    return symbol->rank & RANK_SIZED;
}

bool symbol_is_public(const struct symbol *symbol) {
    return has_size(symbol) && (symbol->rank & (RANK_GLOBAL | RANK_WEAK));
}

/* Returns the number of symbols that begin at `address` or before. */
static size_t count_up_to(const struct symbol_table *table, uint64_t address) {
    size_t low = 0;
    size_t high = table->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (symbol_table_start(table, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds the best symbol whose size, or whose own address, covers `address`. A small symbol may lie
 * inside a larger one, so the search continues to lower symbols. A label inside a function states
 * no size; then the enclosing function is the better result. */
static bool find_covering(const struct symbol_table *table, const struct elf_file *file,
                          uint64_t address, struct symbol *found) {
    const size_t count = count_up_to(table, address);
    *found = (struct symbol){0};
    for (size_t back = 0; back < MAX_NESTED && count > back; back++) {
        Elf64_Sym symbol;
        const size_t at = count - 1 - back;
        if (found->end && has_size(found) && symbol_table_start(table, at) != found->start)
            break;
        if (!read_symbol(table, file, at, &symbol))
            continue;
        /* a damaged size may lead beyond the last address: then `end` is small, and covers
         * nothing */
        const uint64_t end = symbol.st_value + (symbol.st_size ? symbol.st_size : LABEL_BYTES);
        if (address < end && (!found->end || rank_of(&symbol) > found->rank))
            *found = (struct symbol){symbol.st_value, end, at, rank_of(&symbol)};
    }
    return found->end;
}

bool symbol_table_find(const struct symbol_table *table, const struct elf_file *file,
                       uint64_t address, struct symbol *found) {
    struct symbol function;
    uint64_t start;
    uint64_t end;
    const bool covered = find_covering(table, file, address, found);
    if ((covered && has_size(found)) || !table->has_labels ||
        !function_extent(&file->parts[PART_MAIN], address, &start, &end))
        return covered;
    /* the symbol states no size: the function around the address begins at a label, or has no
     * name */
    if (!find_covering(table, file, start, &function) || has_size(&function))
        return covered;
    *found = function;
    found->end = end;
    return true;
}

/* --- names --- */

/* Reads the name at `at`: a few bytes first, and for a long name up to MAX_SYMBOL_NAME. Returns
 * false if the name is empty or too long, or cannot be read. */
static bool read_name(const struct elf_sections *sections, const Elf64_Shdr *strings, uint32_t at,
                      char name[MAX_SYMBOL_NAME]) {
    if (at >= strings->sh_size)
        return false;
    const uint64_t left = strings->sh_size - at;
    for (size_t most = FIRST_NAME_BYTES; most <= MAX_SYMBOL_NAME; most = MAX_SYMBOL_NAME) {
        const size_t size = left < most ? left : most;
        if (!elf_section_read_part(sections, strings, at, name, size))
            return false;
        if (memchr(name, 0, size))
            return name[0] != 0;
        if (size == left || most == MAX_SYMBOL_NAME)
            return false;
    }
    return false;
}

/* Reads the name of the symbol at that place in the index, if it has that rank. */
static bool read_name_at(const struct symbol_table *table, const struct elf_file *file, size_t at,
                         unsigned rank, char name[MAX_SYMBOL_NAME]) {
    Elf64_Sym symbol;
    const enum symbol_names kind = table->index[at] >> TABLE_SHIFT & TABLE_MASK;
    const struct elf_sections *const sections = &file->parts[tables[kind].part];
    if (!read_symbol(table, file, at, &symbol) || rank_of(&symbol) != rank)
        return false;
    const uint32_t strings = sections->headers[table->tables[kind]].sh_link;
    return strings < sections->count &&
           read_name(sections, &sections->headers[strings], symbol.st_name, name);
}

/* Prefers names without a leading underscore, which are mostly the primary names. */
static bool symbol_is_better(const char *name, const char *than) {
    const bool plain = name[0] != '_';
    if (plain != (than[0] != '_'))
        return plain;
    return strcmp(name, than) < 0;
}

bool symbol_table_name(const struct symbol_table *table, const struct symbol *symbol,
                       const struct elf_file *file, char name[MAX_SYMBOL_NAME]) {
    char other[MAX_SYMBOL_NAME];
    size_t at = symbol->at;
    bool found = false;
    for (int i = 0; i < MAX_ALIASES && at > 0; i++, at--)
        if (symbol_table_start(table, at - 1) != symbol->start)
            break;
    for (int i = 0; i < 2 * MAX_ALIASES && at < table->count; i++, at++) {
        if (symbol_table_start(table, at) != symbol->start)
            break;
        if (!read_name_at(table, file, at, symbol->rank, other) ||
            (found && !symbol_is_better(other, name)))
            continue;
        memcpy(name, other, strlen(other) + 1);
        found = true;
    }
    return found;
}

void symbol_table_free(struct symbol_table *table) {
    free(table->index);
    *table = (struct symbol_table){0};
}
