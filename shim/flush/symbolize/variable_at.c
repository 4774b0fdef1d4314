#include "variable_at.h"

#include <string.h>

enum { READ_AT_ONCE = 512, MAX_TABLE_BYTES = MAX_SYMBOLS * sizeof(Elf64_Sym) };

struct search {
    uint64_t address;
    Elf64_Sym found; /* the best symbol so far; st_size 0: none yet */
    const struct elf_sections *sections;
    const Elf64_Shdr *names;
};

/* Prefers the smallest symbol, because a variable may have symbols for its parts, and two names. */
static bool variable_is_better(const struct search *search, const Elf64_Sym *symbol) {
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_name != 0 &&
           symbol->st_shndx != SHN_UNDEF && symbol->st_value <= search->address &&
           search->address - symbol->st_value < symbol->st_size &&
           (search->found.st_size == 0 || symbol->st_size < search->found.st_size);
}

static void scan_table(struct search *search, const struct elf_sections *sections,
                       const Elf64_Shdr *header) {
    Elf64_Sym symbols[READ_AT_ONCE];
    const uint64_t count = header->sh_size / sizeof *symbols;
    for (uint64_t at = 0; at < count; at += READ_AT_ONCE) {
        const size_t some = count - at < READ_AT_ONCE ? count - at : READ_AT_ONCE;
        if (!elf_section_read_part(sections, header, at * sizeof *symbols, symbols,
                                   some * sizeof *symbols))
            return;
        for (size_t i = 0; i < some; i++) {
            if (!variable_is_better(search, &symbols[i]))
                continue;
            search->found = symbols[i];
            search->sections = sections;
            search->names = &sections->headers[header->sh_link];
        }
    }
}

/* Searches one table of each kind, because linkers write no more. */
static void scan_part(struct search *search, const struct elf_sections *sections) {
    bool seen[SHT_DYNSYM + 1] = {false};
    for (uint32_t i = 0; i < sections->count; i++) {
        const Elf64_Shdr *const header = &sections->headers[i];
        if ((header->sh_type != SHT_SYMTAB && header->sh_type != SHT_DYNSYM) ||
            header->sh_entsize != sizeof(Elf64_Sym) || header->sh_size > MAX_TABLE_BYTES ||
            header->sh_link >= sections->count ||
            sections->headers[header->sh_link].sh_type != SHT_STRTAB || seen[header->sh_type])
            continue;
        seen[header->sh_type] = true;
        scan_table(search, sections, header);
    }
}

static bool variable_read_name(const struct search *search, char name[MAX_SYMBOL_NAME]) {
    const uint64_t at = search->found.st_name;
    if (at >= search->names->sh_size)
        return false;
    const uint64_t left = search->names->sh_size - at;
    const size_t size = left < MAX_SYMBOL_NAME ? left : MAX_SYMBOL_NAME;
    return elf_section_read_part(search->sections, search->names, at, name, size) &&
           memchr(name, 0, size) && name[0] != 0;
}

bool variable_at(const struct elf_file *file, uint64_t address, char name[MAX_SYMBOL_NAME],
                 uint64_t *offset) {
    struct search search = {.address = address};
    for (int part = 0; part < ELF_PARTS; part++)
        scan_part(&search, &file->parts[part]);
    if (search.found.st_size == 0 || !variable_read_name(&search, name))
        return false;
    *offset = address - search.found.st_value;
    return true;
}
